"""Keys for programs, as the command line makes, lists and revokes them."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from access import keys as api_keys
from access.errors import BadKeyRequest
from access.models import ApiKey
from tests.web.log_writer import person

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> Any:
    return person(f"owner-{request.node.name}"[:150])


def apikeys(*arguments: str) -> str:
    output = io.StringIO()
    call_command("apikeys", *arguments, stdout=output)
    return output.getvalue()


def test_a_key_is_shown_once_and_kept_only_as_a_digest(owner: Any):
    said = apikeys("create", "--user", owner.username, "--name", "CI", "--scope", "read")
    key = said.split()[0]
    row = ApiKey.objects.get(owner=owner)
    assert key not in json.dumps([str(value) for value in vars(row).values()])
    assert key not in apikeys("list")
    assert key.startswith(row.prefix)
    assert api_keys.authenticate(key) == api_keys.Caller(owner.pk, owner.username, frozenset({"read"}), row.pk, "CI")


def test_a_key_may_run_unless_told_otherwise(owner: Any):
    made = json.loads(apikeys("create", "--user", owner.username, "--json"))
    assert made["scopes"] == ["run"]
    assert api_keys.authenticate(made["key"]).may(api_keys.Scope.READ)
    assert not api_keys.authenticate(made["key"]).may(api_keys.Scope.ADMIN)


def test_a_key_can_be_made_to_expire(owner: Any):
    made = json.loads(apikeys("create", "--user", owner.username, "--days", "30", "--json"))
    expires_at = datetime.fromisoformat(made["expires_at"])
    assert timedelta(days=29) < expires_at - timezone.now() <= timedelta(days=30)
    ApiKey.objects.filter(pk=made["id"]).update(expires_at=timezone.now())
    assert api_keys.authenticate(made["key"]) is None
    (listed,) = [row for row in json.loads(apikeys("list", "--json")) if row["id"] == made["id"]]
    assert listed["state"] == "expired"


def test_a_revoked_key_opens_nothing_and_is_revoked_once(owner: Any):
    made = json.loads(apikeys("create", "--user", owner.username, "--json"))
    assert json.loads(apikeys("revoke", str(made["id"]), "--json")) == {"revoked": made["id"]}
    assert api_keys.authenticate(made["key"]) is None
    with pytest.raises(CommandError, match="no valid key") as refused:
        apikeys("revoke", str(made["id"]))
    assert refused.value.returncode == 3
    assert "revoked" in next(line for line in apikeys("list").splitlines() if made["key"][:12] in line)


@pytest.mark.parametrize(
    ("arguments", "returncode"),
    [
        (["create", "--user", "nobody-at-all"], 3),
        (["create", "--user", "{owner}", "--scope", "everything"], 2),
        (["create", "--user", "{owner}", "--days", "0"], 2),
        (["create", "--user", "{owner}", "--days", "99999999999"], 2),
        (["revoke", "99999999999999999999"], 3),
    ],
)
def test_a_wrong_command_makes_nothing_and_fails(owner: Any, arguments: list[str], returncode: int):
    with pytest.raises(CommandError) as refused:
        apikeys(*[argument.format(owner=owner.username) for argument in arguments])
    assert refused.value.returncode == returncode
    assert not ApiKey.objects.filter(owner=owner).exists()


def test_a_key_without_scope_is_refused_and_any_name_is_storable(owner: Any):
    with pytest.raises(BadKeyRequest):
        api_keys.make_key(owner, "x", [])
    row, _key = api_keys.make_key(owner, "nul \x00 half \ud800 " + "x" * 200, ["read"])
    row.refresh_from_db()
    assert row.name.startswith("nul \ufffd half \ufffd")
    assert len(row.name) == 80


def test_no_text_is_a_key_by_chance():
    for text in ("", "\x00", "\ud800", "x" * 1_000_000, "' OR 1=1 --"):
        assert api_keys.authenticate(text) is None


def test_the_last_use_is_written_at_most_once_a_minute(owner: Any, django_assert_num_queries: Any):
    row, key = api_keys.make_key(owner, "x", ["read"])
    with django_assert_num_queries(2):
        api_keys.authenticate(key)
    row.refresh_from_db()
    first = row.last_used_at
    assert first is not None
    assert timezone.now() - first < timedelta(minutes=1)
    with django_assert_num_queries(1):
        api_keys.authenticate(key)
    ApiKey.objects.update(last_used_at=first - timedelta(seconds=61))
    api_keys.authenticate(key)
    row.refresh_from_db()
    assert row.last_used_at is not None
    assert row.last_used_at >= first


def test_a_refused_key_was_not_used(owner: Any):
    row, key = api_keys.make_key(owner, "x", ["read"])
    api_keys.revoke(row.pk)
    assert api_keys.authenticate(key) is None
    row.refresh_from_db()
    assert row.last_used_at is None


@pytest.mark.parametrize("verb", ["create", "list", "revoke"])
def test_help_shows_examples_and_what_the_exit_status_means(verb: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        call_command("apikeys", verb, "--help")
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"manage.py apikeys {verb}" in said
    assert "3 not found" in said


def test_what_is_said_to_people_goes_to_stderr_and_the_key_alone_to_stdout(owner: Any):
    output, messages = io.StringIO(), io.StringIO()
    call_command("apikeys", "create", "--user", owner.username, stdout=output, stderr=messages)
    assert api_keys.authenticate(output.getvalue().strip()) is not None
    assert "not shown again" in messages.getvalue()
