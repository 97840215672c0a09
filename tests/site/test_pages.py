from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def administrator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada"), backend="django.contrib.auth.backends.ModelBackend")
    return client


def policy(client: Client, page: str) -> dict[str, str]:
    header = client.get(page).headers["Content-Security-Policy"]
    return dict(part.strip().split(" ", 1) for part in header.split(";") if part.strip())


def test_only_the_admin_may_evaluate_expressions_and_nothing_may_run_inline(administrator: Client):
    assert policy(administrator, "/admin/")["script-src"] == "'self' 'unsafe-eval'"
    assert policy(administrator, "/chat/")["script-src"] == "'self'"
    assert policy(administrator, "/administrators-only")["script-src"] == "'self'"


@pytest.mark.parametrize("page", ["/admin/", "/chat/", "/login/", "/nowhere"])
def test_every_page_refuses_frames_plugins_and_foreign_forms(administrator: Client, page: str):
    allowed = policy(administrator, page)
    assert allowed["frame-ancestors"] == allowed["object-src"] == allowed["base-uri"] == "'none'"
    assert allowed["form-action"] == allowed["default-src"] == "'self'"


@pytest.mark.parametrize("page", ["/chat/", "/admin/"])
def test_pages_need_a_login(client: Client, page: str):
    answer = client.get(page)
    assert answer.status_code == 302
    assert "login" in answer["Location"]


def test_the_sidebar_has_our_groups_and_only_what_the_person_may_see(administrator: Client):
    html = administrator.get("/admin/").content.decode()
    for group in ("Operate", "Configure", "Access"):
        assert group in html
    visitor = User.objects.create_user("staff", is_staff=True)
    administrator.force_login(visitor, backend="django.contrib.auth.backends.ModelBackend")
    assert "/admin/auth/user/" not in administrator.get("/admin/").content.decode()


@pytest.mark.parametrize("page", ["auth/user/", "auth/user/add/", "auth/group/", "django_q/ormq/"])
def test_pages_of_other_apps_open_in_our_skin(administrator: Client, page: str):
    assert administrator.get(f"/admin/{page}").status_code == 200


def test_the_language_can_be_switched(client: Client):
    answer = client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/login/"})
    assert answer.status_code == 302
    assert 'lang="zh-hans"' in client.get("/login/").content.decode()


def test_the_favicon_is_found(client: Client):
    answer = client.get("/favicon.ico", follow=True)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "image/svg+xml"
    assert answer.getvalue().startswith(b"<svg")
