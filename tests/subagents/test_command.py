"""`manage.py subagents`: the same facts and sentences as everywhere, for people and for scripts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from subagents.models import Revision

if TYPE_CHECKING:
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
CONFIG = """
subagents:
  agents: {writer: {max_turns: 80}, nobody: {max_turns: 3}}
  custom_agents:
    reviewer: {description: Reviews., system_prompt: Review., tools: [no_such_tool]}
    broken: {description: Lacks a prompt.}
"""


def said(*arguments: str) -> str:
    output = io.StringIO()
    call_command("subagents", *arguments, stdout=output, stderr=io.StringIO(), no_color=True)
    return output.getvalue()


def data(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


def refused(*arguments: str) -> tuple[int, str, str]:
    """Exit status, message, and what went to stdout."""
    output = io.StringIO()
    with pytest.raises(CommandError) as fault:
        call_command("subagents", *arguments, stdout=output, stderr=io.StringIO())
    return fault.value.returncode, str(fault.value), output.getvalue()


def test_the_list_has_every_source_with_its_state(managed: SaveManaged, write_config: WriteConfig):
    managed("writer", description="Writes.\nAnd more.")
    managed("reviewer")
    write_config(CONFIG)
    lines = said("list").splitlines()
    assert lines[0].split()[:3] == ["name", "source", "state"]
    assert any(line.split()[:4] == ["writer", "managed", "overridden", "80"] for line in lines)
    assert "And more" not in said("list")
    found = {(entry["name"], entry["source"]): entry["state"] for entry in data("list")}
    assert found["reviewer", "managed"] == "shadowed"
    assert found["broken", "config"] == "invalid"
    assert {entry["source"] for entry in data("list", "--source", "config")} == {"config"}
    assert [entry["name"] for entry in data("list", "--state", "shadowed")] == ["reviewer"]


def test_one_entry_is_shown_and_every_value_explained(managed: SaveManaged, write_config: WriteConfig):
    managed("writer", tools=[], skills=None, max_turns=9)
    write_config(CONFIG)
    shown = said("show", "WRITER")
    assert "tools: none" in shown
    assert "skills: all enabled skills" in shown
    assert "You are writer." in shown
    assert data("show", "writer")["effective"]["max_turns"] == 80
    line = said("explain", "writer", "--field", "max_turns").strip()
    assert line == "max_turns: 80 turns ← subagents.agents.writer.max_turns; managed: 9 turns; default: 50 turns"
    assert data("explain", "writer", "--field", "max_turns")["max_turns"]["value"] == 80
    assert data("show", "reviewer", "--source", "config")["source"] == "config"


def test_lint_names_what_is_wrong_and_says_so_by_its_exit_status(managed: SaveManaged, write_config: WriteConfig):
    assert data("lint") == []
    managed("reviewer", description="Reads what was written and says what is unclear.")
    write_config(CONFIG)
    status, _message, output = refused("lint", "--json")
    found: dict[tuple[str, str], str] = {}
    for row in json.loads(output):
        found[row["name"], row["source"]] = found.get((row["name"], row["source"]), "") + row["problem"]
    assert status == 1
    assert "no_such_tool" in found["reviewer", "config"]
    assert "stronger source" in found["reviewer", "managed"]
    assert "system_prompt" in found["broken", "config"]
    assert any("nobody" in row["problem"] for row in json.loads(output))
    assert refused("lint", "reviewer")[0] == 1
    assert data("lint", "bash") == []


def test_switching_is_one_history_entry_each(managed: SaveManaged):
    managed("a")
    managed("b", enabled=False)
    assert data("disable", "a", "B") == [
        {"name": "a", "result": "changed", "problem": None},
        {"name": "b", "result": "unchanged", "problem": None},
    ]
    assert said("enable", "a") == "a: changed\n"
    labels = Revision.objects.filter(name="a", number__gt=1).values_list("author_label", flat=True)
    assert list(labels) == ["command line", "command line"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["show", "nobody"], 3),
        (["show", "\udcff"], 3),
        (["show", "bash", "--source", "managed"], 3),
        (["explain", "bash", "--field", "colour"], 2),
        (["lint", "nobody"], 3),
        (["enable", "nobody"], 3),
        (["disable", "bash"], 4),
        (["disable", "a/b"], 3),
    ],
)
def test_each_failure_has_its_exit_status(write_config: WriteConfig, arguments: list[str], status: int):
    assert refused(*arguments)[0] == status


def test_of_several_names_those_that_may_are_switched(managed: SaveManaged):
    managed("a")
    status, message, output = refused("disable", "a", "bash", "--json")
    assert status == 4
    assert "bash cannot be changed here" in message
    assert [row["result"] for row in json.loads(output)] == ["changed", "refused"]
    assert data("show", "a")["state"] == "disabled"


def test_a_refused_file_is_reported_and_fails(write_config: WriteConfig):
    write_config("subagents: [")
    status, message, output = refused("list", "--json")
    assert (status, output) == (1, "")
    assert "config.yaml" in message


def test_nothing_that_somebody_wrote_reaches_the_terminal_as_a_command(managed: SaveManaged):
    managed("odd", description="Does \x1b[31mred.", system_prompt="Say \x1b]0;title\x07 it.")
    for arguments in (("list",), ("show", "odd"), ("explain", "odd")):
        text = said(*arguments)
        assert "\x1b" not in text
        assert "\x07" not in text
    assert data("show", "odd")["definition"]["system_prompt"] == "Say \x1b]0;title\x07 it."


def test_a_wrong_command_line_ends_with_two_and_colour_is_for_terminals_only(tmp_path: Any):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", "subagents", *arguments]
        return subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)

    wrong = run("frobnicate")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    helped = run("explain", "--help")
    assert helped.returncode == 0
    assert "manage.py subagents explain bash --field max_turns" in helped.stdout
    assert "4 conflict" in helped.stdout
    assert "\x1b" not in helped.stdout
