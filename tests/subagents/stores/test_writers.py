"""Two processes that change one definition as fast as they can, and a third that reads it all the while."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from subagents import registry, services
from subagents.kinds import SUBAGENT
from subagents.services import Actor

if TYPE_CHECKING:
    from tests.subagents.conftest import WriteConfig

ROOT = Path(__file__).parents[3]
ROUNDS = 25
WRITER = f"""
import django
django.setup()
from subagents import registry, services
from subagents.errors import StaleVersion
from subagents.kinds import SUBAGENT
actor = services.Actor(label="writer")
print("ready", flush=True)
input()
for _round in range({ROUNDS}):
    while True:
        scout = registry.store(SUBAGENT).get("scout")
        changes = {{"max_turns": scout.max_turns + 1, "system_prompt": f"Look {{scout.max_turns}}. " * 500}}
        try:
            services.update(SUBAGENT, "scout", changes, expected_version=scout.version, actor=actor)
        except StaleVersion as stale:
            assert stale.changes, stale
        else:
            break
"""


@pytest.mark.workers
@pytest.mark.django_db(transaction=True)
def test_two_processes_lose_no_update_and_tear_no_file(
    write_config: WriteConfig, tmp_path: Path, child_environment: dict[str, str]
):
    path = write_config("")
    scout: dict[str, Any] = {"name": "scout", "description": "Finds.", "system_prompt": "Look.", "max_turns": 1}
    services.create(SUBAGENT, scout, actor=Actor(label="test"))
    environment = {
        **child_environment,
        "DEER_FLOW_HOME": str(tmp_path),
        "DEER_FLOW_CONFIG": str(path),
        "DJANGO_SETTINGS_MODULE": "deerflow_site.settings",
    }
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _number in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    store = registry.store(SUBAGENT)
    while any(writer.poll() is None for writer in writers):
        seen = store.get("scout")  # InvalidDefinition when the file were torn
        assert seen.max_turns is not None
        assert seen.system_prompt in ("Look.", f"Look {seen.max_turns - 1}. " * 500)
        assert store.all().invalid == ()
    for writer in writers:
        _out, fault = writer.communicate()
        assert writer.returncode == 0, fault
    revisions = services.revisions(SUBAGENT, "scout")
    assert store.get("scout").max_turns == 1 + 2 * ROUNDS
    assert [revision.number for revision in revisions] == list(range(1 + 2 * ROUNDS, 0, -1))
    assert {revision.action for revision in revisions} == {"created", "changed"}
    assert [revision.document["max_turns"] for revision in revisions] == list(range(1 + 2 * ROUNDS, 0, -1))
