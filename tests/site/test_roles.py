"""What a member, an operator and an administrator may do, on pages and over the API."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db import connection

from access import keys
from subagents import registry
from subagents.api import examples
from tests.access.calling import Api
from tests.access.people import logged_in

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db
ROLES = ("member", "operator", "administrator")
_migration = importlib.import_module("deerflow_site.migrations.0002_roles")


def add_roles() -> None:
    _migration.add_roles(apps, SimpleNamespace(connection=connection))


@pytest.fixture(autouse=True)
def roles(tmp_path: Path, settings: Settings) -> Any:
    """The groups as the migration makes them, also after a test that emptied the database, and a plain config.yaml."""
    settings.CONFIG_FILE = tmp_path / "config.yaml"
    settings.CONFIG_FILE.write_text("", encoding="utf-8")
    add_roles()
    registry.forget()
    yield
    registry.forget()


def somebody(role: str) -> Any:
    user = get_user_model().objects.create_user(f"some-{role}", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return user


def test_making_them_again_changes_nothing_and_keeps_what_was_added():
    extra = Permission.objects.get(codename="delete_thread")
    Group.objects.get(name="member").permissions.add(extra)
    before = {group.name: set(group.permissions.all()) for group in Group.objects.all()}
    add_roles()
    assert {group.name: set(group.permissions.all()) for group in Group.objects.all()} == before
    assert extra in before["member"]
    assert set(before) == set(ROLES)


def test_each_role_may_what_the_one_below_may_and_more():
    member, operator, administrator = (
        set(Group.objects.get(name=name).permissions.values_list("codename", flat=True)) for name in ROLES
    )
    assert member < operator < administrator
    assert "view_prompt" not in member
    assert {"view_prompt", "change_run"} <= operator


def test_the_migrations_permissions_are_djangos_own():
    """None stands twice, and none bears another name than Django would have given it."""
    from django.contrib.auth.management import create_permissions

    count = Permission.objects.count()
    for config in apps.get_app_configs():
        create_permissions(config, verbosity=0)
    assert Permission.objects.count() == count
    assert Permission.objects.get(codename="view_managedsubagent").name == "Can view subagent"
    assert Permission.objects.get(codename="view_prompt").name == "Can read the prompts of subagents"


PAGES = {
    "/admin/subagents/managedsubagent/": (200, 200, 200),
    "/admin/access/apikey/": (200, 200, 200),
    "/admin/access/apikey/add/": (200, 200, 200),
    "/admin/runs/run/": (403, 200, 200),
    "/admin/runs/workerheartbeat/": (403, 200, 200),
    "/admin/auth/user/": (403, 403, 200),
    "/admin/auth/group/": (403, 403, 200),
}


@pytest.mark.parametrize(("page", "statuses"), PAGES.items())
def test_who_may_open_which_page(page: str, statuses: tuple[int, ...]):
    assert tuple(logged_in(somebody(role)).get(page).status_code for role in ROLES) == statuses


CALLS = [
    ("GET", "/subagents", None, (200, 200, 200)),
    ("GET", "/agents", None, (200, 200, 200)),
    ("POST", "/subagents", examples.DOCUMENT, (403, 403, 201)),
    ("POST", "/agents", examples.AGENT_DOCUMENT, (403, 403, 201)),
    ("PATCH", "/subagents/bash", {"max_turns": 1}, (403, 403, 409)),
    ("DELETE", "/subagents/bash", None, (403, 403, 409)),
    ("POST", "/subagents/bulk", {"action": "disable", "names": ["bash"]}, (403, 403, 200)),
]


@pytest.mark.parametrize(("method", "path", "body", "statuses"), CALLS)
def test_who_may_call_what(method: str, path: str, body: Any, statuses: tuple[int, ...]):
    def status(role: str) -> int:
        api = Api(keys.make_key(somebody(role), "x", ["admin"])[1])
        return int(api(method, path, body, if_match="*").status_code)

    assert tuple(map(status, ROLES)) == statuses


def test_prompts_are_for_operators_and_administrators():
    def prompt(role: str) -> Any:
        return Api(keys.make_key(somebody(role), "x", ["read"])[1]).ok("/subagents/bash")["definition"]["system_prompt"]

    assert [prompt(role) is not None for role in ROLES] == [False, True, True]
    page = "/admin/subagents/managedsubagent/builtin-bash/change/"
    shown = [logged_in(get_user_model().objects.get(username=f"some-{role}")).get(page) for role in ROLES]
    assert ["command-line work" in answer.content.decode() for answer in shown] == [False, True, True]


def test_an_administrator_makes_nobody_mightier_than_themselves():
    root = get_user_model().objects.create_user("root", is_superuser=True, is_staff=True)
    me = somebody("administrator")
    client = logged_in(me)
    page = f"/admin/auth/user/{me.pk}/change/"
    fields = {"username": me.username, "is_active": "on", "is_staff": "on", "is_superuser": "on",
              "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "groups": [me.groups.get().pk]}  # fmt: skip
    assert client.post(page, fields).status_code == 302
    me.refresh_from_db()
    assert not me.is_superuser
    for path in ("change", "delete", "password"):
        assert client.post(f"/admin/auth/user/{root.pk}/{path}/", {"post": "yes"}).status_code == 403
    client.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [root.pk], "post": "yes"})
    assert get_user_model().objects.filter(pk=root.pk).exists()
