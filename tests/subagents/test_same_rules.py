"""A value means the same wherever it is written: in config.yaml or in a managed definition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine.config.reader import read_config
from subagents.errors import InvalidDefinition
from subagents.validation import from_config_entry, to_plain, validate_definition

if TYPE_CHECKING:
    from subagents.definitions import Definition

PLAIN = {"description": "Does things.", "system_prompt": "Do it."}


def in_the_file(field: str, value: object) -> Definition | set[str]:
    """The definition, or the paths of what is wrong below the entry. JSON is YAML, so the value is written as JSON."""
    fields = json.dumps({**PLAIN, field: value}, ensure_ascii=False)
    result = read_config(f"subagents: {{custom_agents: {{writer: {fields}, other: {json.dumps(PLAIN)}}}}}".encode())
    assert result.config is not None, result.problems
    agents = result.config.subagents.custom_agents
    assert "other" in agents
    if "writer" in agents:
        return from_config_entry("writer", agents["writer"])
    prefix = "subagents.custom_agents.writer."
    assert all(problem.line == 1 and problem.message for problem in result.problems)
    return {problem.path.removeprefix(prefix).replace(".[", "[") for problem in result.problems}


def as_managed(field: str, value: object) -> Definition | set[str]:
    try:
        return validate_definition({"name": "writer", **PLAIN, field: value})
    except InvalidDefinition as refused:
        return {fault.path.replace(".[", "[") for fault in refused.faults}


@pytest.mark.parametrize(
    ("field", "value", "meant"),
    [
        ("timeout_seconds", 1800, 1800),
        ("timeout_seconds", "1800", 1800),
        ("max_turns", "1", 1),
        ("max_turns", None, None),
        ("enabled", False, False),
        ("tools", None, None),
        ("tools", [], []),
        ("tools", ["bash"], ["bash"]),
        ("skills", None, None),
        ("skills", [], []),
        ("disallowed_tools", ["bash"], ["bash"]),
        ("token_budget", {"max_tokens": "5000"}, {"max_tokens": 5000}),
        ("display_name", "🦊 fox", "🦊 fox"),
        ("system_prompt", "{x} {{y}} %s ${Z}\n", "{x} {{y}} %s ${Z}\n"),
    ],
)
def test_what_is_accepted_means_the_same(field: str, value: object, meant: object):
    written, managed = in_the_file(field, value), as_managed(field, value)
    assert not isinstance(written, set), written
    assert not isinstance(managed, set), managed
    assert to_plain(written)[field] == to_plain(managed)[field] == meant
    assert to_plain(written) == to_plain(managed)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("timeout_seconds", True, "timeout_seconds"),
        ("timeout_seconds", "30m", "timeout_seconds"),
        ("timeout_seconds", 0, "timeout_seconds"),
        ("timeout_seconds", 900.0, "timeout_seconds"),
        ("timeout_seconds", 86_401, "timeout_seconds"),
        ("timeout_seconds", "", "timeout_seconds"),
        ("max_turns", False, "max_turns"),
        ("max_turns", "ten", "max_turns"),
        ("max_turns", -1, "max_turns"),
        ("max_turns", [5], "max_turns"),
        ("enabled", "no", "enabled"),
        ("enabled", 0, "enabled"),
        ("token_budget", {"max_tokens": 1.5}, "token_budget.max_tokens"),
        ("token_budget", {"max_tokens": True}, "token_budget.max_tokens"),
        ("token_budget", {"warn_threshold": "70%"}, "token_budget.warn_threshold"),
        ("tools", "bash, ls", "tools"),
        ("tools", [1], "tools[0]"),
        ("skills", {"a": 1}, "skills"),
        ("description", "", "description"),
        ("system_prompt", None, "system_prompt"),
        ("timeout_second", 10, "timeout_second"),
    ],
)
def test_what_is_refused_is_refused_at_the_same_path(field: str, value: object, path: str):
    assert in_the_file(field, value) == as_managed(field, value) == {path}
