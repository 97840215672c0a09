"""Keys for programs, as the command line makes, lists and revokes them."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs import api_keys
from runs.errors import BadInput
from runs.models import ApiKey
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
    assert api_keys.authenticate(key) == api_keys.Caller(owner.pk, owner.username, frozenset({"read"}))


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
    with pytest.raises(BadInput):
        api_keys.make_key(owner, "x", [])
    row, _key = api_keys.make_key(owner, "nul \x00 half \ud800 " + "x" * 200, ["read"])
    row.refresh_from_db()
    assert row.name.startswith("nul \ufffd half \ufffd")
    assert len(row.name) == 80


def test_no_text_is_a_key_by_chance():
    for text in ("", "\x00", "\ud800", "x" * 1_000_000, "' OR 1=1 --"):
        assert api_keys.authenticate(text) is None
