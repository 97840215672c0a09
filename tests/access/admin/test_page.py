"""The page of API keys, as the people who use it meet it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.utils import timezone

from access import keys
from access.models import ApiKey
from tests.access.people import logged_in, person

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

pytestmark = pytest.mark.usefixtures("db")
LIST = "/admin/access/apikey/"
OWN = ("view_apikey", "add_apikey", "change_apikey")


@pytest.fixture
def ada() -> User:
    return person(*OWN, "change_managedsubagent", name="ada", is_staff=True)


@pytest.fixture
def client(ada: User) -> Client:
    return logged_in(ada)


def make(client: Client, **fields: Any) -> Any:
    return client.post(f"{LIST}add/", {"name": "build bot", "scopes": ["read"], "days": "30", **fields})


def test_a_new_key_is_shown_on_the_answer_and_nowhere_else(client: Client, ada: User):
    answer = make(client, scopes=["read", "admin"])
    (key,) = re.findall(r"sa_live_[\w-]{30,}", answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    caller = keys.authenticate(key)
    assert caller is not None
    assert (caller.owner_id, caller.scopes) == (ada.pk, {"read", "admin"})
    row = ApiKey.objects.get()
    assert row.expires_at is not None
    assert timedelta(days=29) < row.expires_at - timezone.now() <= timedelta(days=30)
    for page in (LIST, f"{LIST}{row.pk}/change/", f"{LIST}{row.pk}/history/"):
        assert key not in client.get(page).content.decode()
    stored = [session.session_data for session in Session.objects.all()]
    assert key not in repr([stored, *LogEntry.objects.values()])


def test_the_list_shows_prefix_scopes_state_and_last_use(client: Client, ada: User):
    row, key = keys.make_key(ada, "nightly <b>", ["run"], timezone.now() + timedelta(days=3))
    keys.authenticate(key)
    shown = client.get(LIST).content.decode()
    assert f"{row.prefix}…" in shown
    assert "nightly &lt;b&gt;" in shown
    assert "Valid" in shown
    row.refresh_from_db()
    assert row.last_used_at is not None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"scopes": []}, "This field is required."),
        ({"scopes": ["everything"]}, "everything is not one of the available choices."),
        ({"name": ""}, "This field is required."),
        ({"days": "0"}, "0 is not one of the available choices."),
    ],
)
def test_a_wrong_choice_makes_no_key_and_says_why(client: Client, fields: dict[str, Any], sentence: str):
    assert sentence in make(client, **fields).content.decode()
    assert not ApiKey.objects.exists()


def test_a_key_may_be_made_to_last_until_it_is_revoked(client: Client):
    make(client, days="")
    assert ApiKey.objects.get().expires_at is None


def test_revoking_asks_first_and_then_holds_at_once(client: Client, ada: User):
    row, key = keys.make_key(ada, "old", ["read"])
    question = client.get(f"{LIST}{row.pk}/revoke/")
    assert "cannot be undone" in question.content.decode()
    assert keys.authenticate(key) is not None
    answer = client.post(f"{LIST}{row.pk}/revoke/", follow=True)
    assert "The key old is revoked." in answer.content.decode()
    assert keys.authenticate(key) is None
    assert LogEntry.objects.get().object_id == str(row.pk)
    client.post(f"{LIST}{row.pk}/revoke/")
    assert LogEntry.objects.count() == 1


def test_several_keys_are_revoked_at_once_with_one_entry_each(client: Client, ada: User):
    rows = [keys.make_key(ada, name, ["read"])[0] for name in ("a", "b")]
    keys.revoke(rows[0].pk)
    chosen = {"action": "revoke", "_selected_action": [row.pk for row in rows]}
    assert "1 key revoked." in client.post(LIST, chosen, follow=True).content.decode()
    assert LogEntry.objects.count() == 1


def test_everybody_sees_and_revokes_only_their_own_keys(client: Client):
    row, key = keys.make_key(person(*OWN, is_staff=True), "of somebody else", ["admin"])
    assert "of somebody else" not in client.get(LIST).content.decode()
    for page in ("change", "history"):
        assert "of somebody else" not in client.get(f"{LIST}{row.pk}/{page}/", follow=True).content.decode()
    assert client.post(f"{LIST}{row.pk}/revoke/").status_code == 404
    client.post(LIST, {"action": "revoke", "_selected_action": [row.pk]})
    assert keys.authenticate(key) is not None


def test_whoever_may_see_all_keys_revokes_them_too(ada: User):
    row, key = keys.make_key(ada, "of ada", ["admin"])
    client = logged_in(person(*OWN, "all_keys", is_staff=True))
    assert "of ada" in client.get(LIST).content.decode()
    client.post(f"{LIST}{row.pk}/revoke/")
    assert keys.authenticate(key) is None


def test_looking_is_not_revoking_or_making(ada: User):
    viewer = person("view_apikey", is_staff=True)
    row, key = keys.make_key(viewer, "mine", ["read"])
    client = logged_in(viewer)
    assert client.get(LIST).status_code == 200
    assert client.post(f"{LIST}{row.pk}/revoke/").status_code == 403
    assert client.get(f"{LIST}{row.pk}/revoke/").status_code == 403
    assert make(client).status_code == 403
    assert keys.authenticate(key) is not None


def test_without_permission_or_login_there_is_no_page():
    assert logged_in(person(is_staff=True)).get(LIST).status_code == 403
    from django.test import Client

    assert Client().get(LIST).status_code == 302


def test_a_row_is_never_changed_or_deleted_by_hand(ada: User):
    row, _key = keys.make_key(ada, "kept", ["read"])
    root = logged_in(person(is_staff=True, is_superuser=True))
    assert root.post(f"{LIST}{row.pk}/change/", {"name": "other"}).status_code == 403
    assert root.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert ApiKey.objects.get().name == "kept"


def test_the_page_speaks_chinese(client: Client, ada: User):
    keys.make_key(ada, "x", ["read"])
    for page in (LIST, f"{LIST}add/"):
        assert "API 密钥" in client.get(page, headers={"accept-language": "zh-hans"}).content.decode()
