"""Who may do what: the key's scope and its owner's permissions, both at the moment of use; a browser by its session."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from access import keys
from access.models import ApiKey
from subagents.api import examples
from tests.access.calling import BASE, Api, caller, is_problem
from tests.access.people import logged_in, person
from tests.subagents.api.conftest import EVERYTHING

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("write_config")]
READS = [
    "/subagents",
    "/subagents/bash",
    "/subagents/bash/effective",
    "/subagents/bash/references",
    "/subagents/bash/versions",
    "/subagents/bash/versions/1",
    "/agents",
    "/agents/x",
    "/agents/x/versions",
    "/agents/x/versions/1",
]
WRITES = [
    (method, path + rest)
    for path in ("/subagents", "/agents")
    for method, rest in (("POST", ""), ("POST", "/bulk"), ("PATCH", "/x"), ("PUT", "/x"), ("DELETE", "/x"))
]
ALL = [("GET", path) for path in READS] + WRITES
PERMISSION = {"POST": "add", "PATCH": "change", "PUT": "change", "DELETE": "delete", "GET": "view"}


@pytest.mark.parametrize(("method", "path"), ALL)
def test_without_key_or_session_nothing_is_said(method: str, path: str):
    answer = Client(raise_request_exception=False).generic(method, BASE + path)
    is_problem(answer, 401, "not_authenticated")
    assert answer["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path"), ALL)
def test_a_key_without_its_owners_permission_may_not_do_it(method: str, path: str):
    problem = is_problem(caller()(method, path), 403, "forbidden")
    verb = "change" if path.endswith("/bulk") else PERMISSION[method]
    assert f"subagents.{verb}_" in problem["detail"]


@pytest.mark.parametrize(("method", "path"), WRITES)
@pytest.mark.parametrize("scope", ["read", "run"])
def test_only_a_key_with_the_scope_admin_changes_something(method: str, path: str, scope: str):
    problem = is_problem(caller(*EVERYTHING, scopes=(scope,))(method, path), 403, "scope_missing")
    assert "admin" in problem["detail"]


@pytest.mark.parametrize("scope", ["read", "run", "admin"])
def test_every_scope_reads(scope: str):
    assert caller(*EVERYTHING, scopes=(scope,)).get("/subagents").status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"revoked_at": timezone.now()},
        {"expires_at": timezone.now() - timedelta(seconds=1)},
        {"digest": "0" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_key_that_no_longer_holds_opens_nothing_at_the_next_request(api: Api, change: dict[str, Any]):
    assert api.get("/subagents").status_code == 200
    ApiKey.objects.update(**change)
    is_problem(api.get("/subagents"), 401, "bad_key")


def test_a_key_of_somebody_who_was_shut_out_opens_nothing(api: Api):
    api.user.is_active = False
    api.user.save()
    is_problem(api.get("/subagents"), 401, "bad_key")
    is_problem(api("POST", "/subagents", examples.DOCUMENT), 401, "bad_key")
    api.user.delete()
    is_problem(api.get("/subagents"), 401, "bad_key")


def test_permissions_are_those_of_this_moment(api: Api):
    assert api("POST", "/subagents", examples.DOCUMENT).status_code == 201
    api.user.user_permissions.set(Permission.objects.filter(codename="view_managedsubagent"))
    is_problem(api("POST", "/subagents", {**examples.DOCUMENT, "name": "b"}), 403, "forbidden")
    assert api.ok("/subagents/researcher")["definition"]["system_prompt"] is None


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "bearer  {key}"},
        {"x-api-key": "{key}"},
        {"x-api-key": " {key} ", "authorization": "Basic nonsense"},
    ],
)
def test_a_key_may_come_in_either_header(api: Api, headers: dict[str, str]):
    sent = {name: value.format(key=api.key) for name, value in headers.items()}
    assert Client(headers=sent).get(f"{BASE}/subagents").status_code == 200


@pytest.mark.parametrize("text", ["sa_live_wrong", "x" * 5000, "\u00e9", "' OR 1=1 --"])
def test_no_text_is_a_key_by_chance(text: str):
    for name, value in (("x-api-key", text), ("authorization", f"Bearer {text}")):
        is_problem(Client(headers={name: value}).get(f"{BASE}/subagents"), 401, "bad_key")


def test_a_browser_changes_something_only_from_a_page_of_ours():
    client = logged_in(person(*EVERYTHING), enforce_csrf_checks=True, raise_request_exception=False)
    assert client.get(f"{BASE}/subagents").status_code == 200
    send = {"data": examples.DOCUMENT, "content_type": "application/json"}
    is_problem(client.post(f"{BASE}/subagents", **send), 403, "csrf_failed")
    client.get("/login/")
    client.get("/admin/login/?next=/admin/")
    token = "a" * 32
    client.cookies["csrftoken"] = token
    assert client.post(f"{BASE}/subagents", **send, headers={"x-csrftoken": token}).status_code == 201


def test_a_key_needs_no_token_and_beats_the_session():
    client = logged_in(person(*EVERYTHING), enforce_csrf_checks=True)
    _row, key = keys.make_key(person("view_managedsubagent"), "x", ["admin"])
    headers = {"authorization": f"Bearer {key}"}
    answer = client.post(f"{BASE}/subagents", examples.DOCUMENT, content_type="application/json", headers=headers)
    is_problem(answer, 403, "forbidden")


def test_a_session_ends_with_its_account():
    user = person(*EVERYTHING)
    client = logged_in(user)
    user.is_active = False
    user.save()
    is_problem(client.get(f"{BASE}/subagents"), 401, "not_authenticated")
