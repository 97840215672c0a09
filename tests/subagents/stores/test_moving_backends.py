"""Definitions move between database and files without loss, and nothing that is in doubt is touched."""

from __future__ import annotations

import json
import os
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from subagents import registry, services
from subagents.kinds import AGENT, KINDS, SUBAGENT
from tests.subagents.stores.changing import TESTER, history, make

if TYPE_CHECKING:
    from pathlib import Path

    from subagents.registry import Backend
    from tests.subagents.conftest import WriteConfig

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("write_config")]


@pytest.fixture
def target(backend: str) -> Backend:
    return "db" if backend == "file" else "file"


def contents(backend: Backend) -> list[dict[str, object]]:
    return [kind.to_plain(item) for kind in KINDS for item in registry.open_store(kind, backend).all().items]


def run(*arguments: str) -> dict[str, str]:
    """Call the command and return what became of each definition."""
    out = StringIO()
    try:
        call_command("agent_storage", "move", *arguments, "--json", stdout=out, stderr=StringIO())
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    results = {f"{row['kind']} {row['name']}": row["result"] for row in json.loads(out.getvalue())["definitions"]}
    assert status == int(any(result not in ("moved", "copied") for result in results.values()))
    return results


def some() -> None:
    make(SUBAGENT, "scout", tools=[], skills=None, token_budget={"max_tokens": 5}, system_prompt="{{ x }} 侦察\r\n")
    make(SUBAGENT, "ranger", tools=["bash"], enabled=False)
    make(AGENT, "boss", allowed_subagents=[], tools=None)
    make(AGENT, "chief", allowed_subagents=["scout", "nobody"])


def test_every_definition_is_moved_field_for_field_and_keeps_its_history(backend: Backend, target: Backend):
    some()
    before = contents(backend)
    assert set(run("--to", target).values()) == {"moved"}
    assert contents(target) == before
    assert contents(backend) == []
    assert history(SUBAGENT) == ["moved", "created"]
    assert run("--to", target) == {}
    assert set(run("--to", backend).values()) == {"moved"}
    assert contents(backend) == before


def test_life_goes_on_after_the_move_and_the_setting(target: Backend, backend: Backend, write_config: WriteConfig):
    some()
    run("--to", target)
    write_config("").write_text(f"agent_storage: {{backend: {target}}}")
    registry.forget()
    scout = registry.current().catalogue.runnable["scout"].definition
    services.update(SUBAGENT, "scout", {"max_turns": 9}, expected_version=scout.version or "", actor=TESTER)
    assert history(SUBAGENT) == ["changed", "moved", "created"]


def test_a_dry_run_changes_nothing_and_says_the_same(backend: Backend, target: Backend):
    some()
    before = contents(backend)
    promised = run("--to", target, "--dry-run")
    assert (contents(backend), contents(target)) == (before, [])
    assert history(SUBAGENT) == ["created"]
    assert run("--to", target) == promised


def test_kept_ones_go_with_the_next_move(backend: Backend, target: Backend):
    some()
    before = contents(backend)
    assert set(run("--to", target, "--keep").values()) == {"copied"}
    assert contents(backend) == contents(target) == before
    assert set(run("--to", target).values()) == {"moved"}
    assert (contents(backend), contents(target)) == ([], before)
    assert history(SUBAGENT) == ["moved", "created"]


def test_another_definition_of_the_name_is_a_conflict_and_both_stay(backend: Backend, target: Backend):
    some()
    other = registry.open_store(SUBAGENT, target)
    stored = other.put(
        SUBAGENT.validate({"name": "scout", "description": "x", "system_prompt": "y"}), expected_version=None
    )
    results = run("--to", target)
    assert results == {
        "subagent scout": "conflict",
        "subagent ranger": "moved",
        "agent boss": "moved",
        "agent chief": "moved",
    }
    assert other.get("scout") == stored
    assert [each["name"] for each in contents(backend)] == ["scout"]
    with pytest.raises(CommandError):
        call_command("agent_storage", "move", "--to", target, stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize("backend", ["file"])
def test_a_broken_file_is_reported_and_left_where_it_is(tmp_path: Path):
    some()
    broken = tmp_path / "managed-subagents" / "half.json"
    broken.write_bytes(b"{half")
    assert run("--to", "db")["subagent half"] == "broken"
    assert broken.read_bytes() == b"{half"


@pytest.mark.parametrize("backend", ["db"])
def test_a_full_disk_loses_nothing(backend: Backend, monkeypatch: pytest.MonkeyPatch):
    some()
    before = contents(backend)

    def fail(*_arguments: Any) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail)
        assert set(run("--to", "file").values()) == {"failed"}
    assert (contents("db"), contents("file")) == (before, [])
