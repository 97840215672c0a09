"""Async subagents of deepagents, taken over from the files it has them in."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from subagents import registry
from subagents.formats.deepagents import NotRead, read_async_subagents

SAMPLE = Path(__file__).parents[1] / "samples" / "28_deepagents_config.toml"
PYTHON = b"""
from deepagents import AsyncSubAgent, create_deep_agent
async_subagents = [
    AsyncSubAgent(name="researcher", description="Research agent.", graph_id="researcher"),
    {"name": "coder", "description": "Codes.", "graph_id": "coder", "url": "https://coder.example"},
    AsyncSubAgent(name="made", description="At run time.", graph_id=os.system("touch /tmp/x")),
]
"""


def test_the_command_line_s_toml_gives_what_can_be_used_and_says_of_the_rest_what_is_wrong():
    found = {one.name: one for one in read_async_subagents(SAMPLE.read_bytes(), SAMPLE.name)}
    assert [name for name, one in found.items() if one.agent] == ["researcher", "local"]
    assert "a header's name" in " ".join(found["browser-specialist"].problems)
    assert {part.partition(":")[0] for part in found["broken"].problems} == {"description", "graph_id"}
    assert "Bearer demo" not in repr(found["browser-specialist"].problems)


def test_python_is_read_and_never_run():
    found = read_async_subagents(PYTHON, "agent.py")
    assert [(one.name, one.agent.url) for one in found] == [
        ("researcher", None),
        ("coder", "https://coder.example"),
    ]


def test_json_is_a_list_or_holds_one():
    entries = [{"name": "a", "description": "Works.", "graph_id": "g"}]
    for value in (entries, {"async_subagents": entries}):
        assert [one.name for one in read_async_subagents(json.dumps(value).encode(), "x.json")] == ["a"]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"[", "x.json"),
        (b"= 1", "x.toml"),
        (b"def", "x.py"),
        (b"\xff", "x.json"),
        (b"{}", "x.json"),
        (b"(" * 9999, "x.py"),
    ],
)
def test_a_file_without_any_is_one_sentence(raw, name):
    with pytest.raises(NotRead):
        read_async_subagents(raw, name)


@pytest.mark.django_db
def test_importing_shows_first_and_writes_when_told_to(write_config):
    write_config("")

    def ran(*more: str) -> dict[str, str]:
        out = StringIO()
        with pytest.raises(CommandError, match="not all can be imported"):
            call_command("remote_agents", "import", str(SAMPLE), "--json", *more, stdout=out)
        return {row["name"]: row["result"] for row in json.loads(out.getvalue())}

    shown = ran()
    assert shown == {"researcher": "new", "browser-specialist": "invalid", "local": "new", "broken": "invalid"}
    assert registry.current(max_age=0).remotes == ()
    assert ran("--write") == shown
    assert [one.name for one in registry.current(max_age=0).remotes] == ["local", "researcher"]
    assert ran()["researcher"] == "same"
