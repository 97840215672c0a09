"""Everybody's page of their own API keys: for those too who may not enter the admin, by the admin's rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.test import Client

from access import keys
from access.models import ApiKey
from tests.access.people import logged_in, person
from tests.site.test_roles import add_roles

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
PAGE = "/keys/"


@pytest.fixture
def ada() -> User:
    """A member: the role alone, no staff."""
    add_roles()
    user = person(name="ada")
    user.groups.add(Group.objects.get(name="member"))
    return user


@pytest.fixture
def client(ada: User) -> Client:
    return logged_in(ada)


def make(client: Client, **fields: Any) -> Any:
    return client.post(PAGE, {"name": "build bot", "scopes": ["read"], "days": "30", **fields})


def test_a_member_makes_a_key_that_is_shown_on_the_answer_and_nowhere_else(client: Client, ada: User):
    assert client.get("/admin/access/apikey/").status_code == 302
    answer = make(client, scopes=["read", "run"])
    (key,) = re.findall(r"sa_live_[\w-]{30,}", answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    caller = keys.authenticate(key)
    assert caller is not None
    assert (caller.owner_id, caller.scopes) == (ada.pk, {"read", "run"})
    shown = client.get(PAGE).content.decode()
    assert key not in shown
    assert "build bot" in shown
    assert f"{ApiKey.objects.get().prefix}…" in shown
    stored = [session.session_data for session in Session.objects.all()]
    assert key not in repr([stored, *LogEntry.objects.values()])
    assert LogEntry.objects.get().user_id == ada.pk


def test_only_scopes_that_can_be_of_use_are_offered_and_taken(client: Client, ada: User):
    assert 'value="admin"' not in client.get(PAGE).content.decode()
    refused = make(client, scopes=["admin"])
    assert refused.status_code == 422
    assert "admin is not one of the available choices." in refused.content.decode()
    assert not ApiKey.objects.exists()
    builder = logged_in(person("add_apikey", "change_customagent"))
    assert make(builder, scopes=["admin"]).status_code == 200
    assert ApiKey.objects.get().scopes == ["admin"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"scopes": []}, "This field is required."),
        ({"scopes": ["everything"]}, "everything is not one of the available choices."),
        ({"name": ""}, "This field is required."),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"name": "n" * 81}, "at most 80 characters"),
        ({"days": "0"}, "0 is not one of the available choices."),
    ],
)
def test_a_wrong_choice_makes_no_key_and_says_why(client: Client, fields: dict[str, Any], sentence: str):
    refused = make(client, **fields)
    assert refused.status_code == 422
    assert sentence in refused.content.decode()
    assert not ApiKey.objects.exists()


def test_a_revoked_key_is_refused_at_once_and_stays_listed(client: Client, ada: User):
    row, key = keys.make_key(ada, "nightly <b>", ["run"])
    page = client.get(PAGE).content.decode()
    assert "nightly &lt;b&gt;" in page
    assert "cannot be undone" in page
    answer = client.post(f"{PAGE}{row.pk}/revoke", follow=True)
    assert "is revoked" in answer.content.decode()
    assert keys.authenticate(key) is None
    assert f"{PAGE}{row.pk}/revoke" not in answer.content.decode()
    client.post(f"{PAGE}{row.pk}/revoke")
    assert LogEntry.objects.count() == 1


def test_nobody_sees_or_revokes_a_key_of_somebody_else_here(client: Client):
    row, key = keys.make_key(person(), "of somebody else", ["read"])
    root = logged_in(person(is_staff=True, is_superuser=True))
    for one in (client, root):
        assert "of somebody else" not in one.get(PAGE).content.decode()
        assert one.post(f"{PAGE}{row.pk}/revoke").status_code == 404
    assert keys.authenticate(key) is not None


def test_without_the_right_there_is_the_list_and_no_form():
    user = person()
    row, key = keys.make_key(user, "mine", ["read"])
    client = logged_in(user)
    page = client.get(PAGE).content.decode()
    assert "mine" in page
    assert "You may not make keys" in page
    assert make(client).status_code == 403
    assert client.post(f"{PAGE}{row.pk}/revoke").status_code == 403
    assert keys.authenticate(key) is not None


def test_whoever_is_not_signed_in_is_asked_to(ada: User):
    row, _key = keys.make_key(ada, "mine", ["read"])
    assert Client().get(PAGE)["Location"].startswith("/login/")
    assert Client().post(f"{PAGE}{row.pk}/revoke")["Location"].startswith("/login/")
    assert logged_in(ada).get(f"{PAGE}{row.pk}/revoke").status_code == 405
    forged = logged_in(ada, enforce_csrf_checks=True)
    assert forged.post(f"{PAGE}{row.pk}/revoke").status_code == 403
    assert make(forged).status_code == 403


def test_the_chat_links_it_and_it_speaks_chinese(client: Client, ada: User):
    assert f'href="{PAGE}"' in client.get("/chat/").content.decode()
    keys.make_key(ada, "x", ["read"])
    page = client.get(PAGE, headers={"accept-language": "zh-hans"}).content.decode()
    for words in ("API 密钥", "有效", "创建密钥", "从未"):
        assert words in page
