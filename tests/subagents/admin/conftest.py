"""The suite of the Subagents page. It runs in full with one backend per skin, its smoke tests with both.

The skin is that of the process (SUBAGENTS_ADMIN); see docs/decisions/the-page-in-both-skins.md.
"""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as site_settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from subagents import registry
from subagents.kinds import SUBAGENT
from subagents.models import ManagedSubagent

if TYPE_CHECKING:
    from pathlib import Path

    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

    from subagents.definitions import Definition
    from tests.subagents.conftest import WriteConfig

LIST = "/admin/subagents/managedsubagent/"
BACKENDS = {"unfold": "db", "stock": "file"}

PageText = Callable[[str], str]
Spoil = Callable[[str], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        own = BACKENDS[site_settings.ADMIN_SKIN]
        is_smoke = metafunc.definition.get_closest_marker("smoke") is not None
        metafunc.parametrize("backend", sorted({"db", "file"}) if is_smoke else [own], indirect=True, scope="function")


@pytest.fixture(autouse=True)
def backend(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> str:
    """Where managed definitions are kept in this test."""
    settings.DEER_FLOW_HOME = tmp_path / "home"
    settings.DEER_FLOW_HOME.mkdir(mode=0o700)
    return str(request.param)


@pytest.fixture
def write_config(write_config: WriteConfig, backend: str) -> WriteConfig:
    """Write the configuration file, with the backend of this test in its last line."""

    def write(text: str) -> Path:
        return write_config(f"{text}\nagent_storage: {{backend: {backend}}}\n")

    write("")
    return write


@pytest.fixture
def spoil(write_config: WriteConfig, backend: str, settings: Settings) -> Spoil:
    """Make what is stored under a name unreadable, past the services, as an accident would."""

    def damage(name: str) -> None:
        if backend == "file":
            path = settings.DEER_FLOW_HOME / "managed-subagents" / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('{"name": "' + name + '", "description": "Cut sh', encoding="utf-8")
        else:
            ManagedSubagent.objects.filter(name=name).update(tools={"a": 1}, description="")
        registry.forget()

    return damage


def page_of(key: str) -> str:
    return f"{LIST}{key}/change/"


def stored(name: str) -> Definition:
    """The managed definition as it is stored now."""
    return registry.store(SUBAGENT).get(name)


def names() -> list[str]:
    """The names of all managed definitions that can be read."""
    return [item.name for item in registry.store(SUBAGENT).all().items]


@pytest.fixture
def admin_client(db: None) -> Client:
    """An administrator, who may do everything. Without a password: making one takes longer than a page."""
    return _logged_in(get_user_model().objects.create(username="admin", is_staff=True, is_superuser=True))


@pytest.fixture
def viewer(db: None) -> Client:
    """Staff who may look at subagents and nothing else."""
    return _staff("viewer", "view_managedsubagent")


@pytest.fixture
def prompt_reader(db: None) -> Client:
    """Staff who may look at subagents and read their prompts."""
    return _staff("prompt-reader", "view_managedsubagent", "view_prompt")


@pytest.fixture
def editor(db: None) -> Client:
    """Staff who may add, change and delete subagents, and read no prompt."""
    return _staff("editor", *(f"{verb}_managedsubagent" for verb in ("view", "add", "change", "delete")))


@pytest.fixture
def outsider(db: None) -> Client:
    """Staff without any permission."""
    return _staff("outsider")


@pytest.fixture
def text_of(admin_client: Client) -> PageText:
    """The unescaped text of a page as the administrator gets it."""

    def get(path: str) -> str:
        response = admin_client.get(path)
        assert response.status_code == 200, response
        return unescape(response.content.decode())

    return get


def said(response: Any) -> str:
    """The messages that the page after a redirect shows."""
    return " ".join(str(message) for message in response.context["messages"])


def _staff(name: str, *codenames: str) -> Client:
    user = get_user_model().objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return _logged_in(user)


def _logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client
