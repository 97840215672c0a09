"""Which tools an agent gets by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tools.names import DELEGATION_TOOLS, KNOWN_TOOLS
from engine.tools.registry import allowed_tools, build_tools, tool_names

LEAD = ("ls", "read_file", "bash", "task", "ask_clarification", "acme_search")


def choose(requested, disallowed=(), *, lead=LEAD, bash=True):
    return allowed_tools(requested, disallowed, lead_tools=lead, bash_available=bash)


def test_nothing_said_means_every_tool_of_the_lead_but_delegation():
    choice = choose(None)
    assert choice.names == ("ls", "read_file", "bash", "acme_search")
    assert choice.denied == ("task", "ask_clarification")


def test_an_empty_list_means_no_tool():
    assert choose([]).names == ()


def test_a_list_means_only_those_and_only_what_the_lead_has():
    choice = choose(["write_file", "read_file", "acme_search"])
    assert (choice.names, choice.denied) == (("read_file", "acme_search"), ("write_file",))


def test_a_name_that_exists_nowhere_is_reported_and_widens_nothing():
    choice = choose(["raed_file", "read_file"])
    assert (choice.names, choice.unknown) == (("read_file",), ("raed_file",))


def test_disallowed_wins_over_a_list_that_names_the_tool():
    choice = choose(["ls", "bash"], ["bash"])
    assert (choice.names, choice.denied) == (("ls",), ("bash",))


def test_bash_goes_while_nothing_can_run_it():
    assert "bash" not in choose(None, bash=False).names
    assert choose(["bash"], bash=False).denied == ("bash",)


@given(
    st.none() | st.lists(st.sampled_from([*sorted(KNOWN_TOOLS), "acme_search", "nonsense"])),
    st.lists(st.sampled_from(sorted(KNOWN_TOOLS))),
    st.lists(st.sampled_from([*sorted(KNOWN_TOOLS), "acme_search"])),
    st.booleans(),
)
def test_no_choice_ever_has_more_than_the_lead_or_a_delegation_tool_and_every_name_is_accounted_for(
    requested, disallowed, lead, bash
):
    choice = choose(requested, disallowed, lead=lead, bash=bash)
    assert set(choice.names) <= set(lead) - set(DELEGATION_TOOLS) - set(disallowed)
    asked = set(lead if requested is None else requested)
    assert asked == {*choice.names, *choice.unknown, *choice.denied}
    assert len(choice.names) + len(choice.unknown) + len(choice.denied) == len(asked)


def test_every_built_in_name_gives_a_tool_of_that_name_and_no_limit_is_an_argument():
    tools = build_tools(tool_names())
    assert [tool.name for tool in tools] == list(tool_names())
    for tool in tools:
        arguments = set(tool.tool_call_schema.model_json_schema()["properties"])
        assert arguments
        assert not arguments & {"runtime", "timeout", "timeout_seconds", "limit"}
        assert tool.description


def test_one_object_serves_every_agent():
    assert build_tools(["ls", "ls"]) == build_tools(["ls"])


def test_a_name_that_is_not_built_in_is_the_callers_mistake():
    with pytest.raises(KeyError):
        build_tools(["web_search"])


def test_names_choices_and_the_sandbox_load_no_agent_stack():
    program = (
        "import sys, engine.tools.registry, engine.sandbox.factory, engine.text\n"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " {'langchain', 'langchain_core', 'langgraph', 'pydantic', 'django'}])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[3],
        check=True,
    )
    assert answer.stdout.strip() == "[]"
