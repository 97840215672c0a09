"""A run of a custom agent is bounded by it: prompt, model, tools, skills and whom it may call."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from runs.statuses import ErrorCode, RunStatus
from subagents import services as definitions
from subagents.kinds import AGENT, SUBAGENT
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runs.models import Run
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel
    from tests.scripted_model.calls import ModelCall

TESTS = definitions.Actor(label="a test")
PROMPT = 'You are {name}: {{x}} {"a": {b}} %s ${X} {% if %} <b>.'


def call_of(name: str, **step: Any) -> tuple[str, str]:
    return scripts.script({"calls": [scripts.task_call("part", "Do it.", subagent=name)], **step}, {}, kind="lead")


def enum_of(call: ModelCall) -> list[str] | None:
    """The names that the offered `task` tool accepts; None: it is not offered."""
    tools = [tool["function"] for tool in call.body.get("tools") or () if tool["function"]["name"] == "task"]
    return tools[0]["parameters"]["properties"]["subagent_type"]["enum"] if tools else None


def roster_of(call: ModelCall) -> list[str]:
    """The names that the system prompt lists."""
    listed = call.system_text.partition("Subagents you may call")[2]
    return [line[2:].split(":")[0] for line in listed.splitlines() if line.startswith("- ")]


def refusals(house: House, run: Run) -> list[str]:
    return [str(result["content"]) for result in house.results(run) if "child_run_id" not in result.get("artifact", {})]


# --- What it runs with ------------------------------------------------------------------------------------------
def test_a_run_gets_the_agents_prompt_byte_for_byte_its_model_and_its_tools(house: House, model: ScriptedModel):
    house.agent("writer", system_prompt=PROMPT, display_name="The Writer", tools=["read_file", "ls"], skills=["prose"])
    run = house.answer(scripts.instant()[1], agent="writer")
    (call,) = model.requests
    assert run.status == RunStatus.SUCCESS
    assert call.system_text.startswith(PROMPT + "\n")
    assert set(call.tool_names) == {"read_file", "ls", "task"}
    assert (run.agent, run.model) == ("writer", "scripted")
    assert {key: run.definition[key] for key in ("display_name", "version", "skills", "tools")} == {
        "display_name": "The Writer",
        "version": "1",
        "skills": ["prose"],
        "tools": ["ls", "read_file"],
    }


def test_a_model_of_the_request_goes_before_the_agents_own(house: House):
    second = {"use": "langchain_openai:ChatOpenAI", "api_key": "sk-x", "base_url": house.model.url, "model": "scripted"}
    house.configure(more_models=[{"name": "second", **second}, {"name": "third", **second}])
    house.agent("writer", model="second")
    assert house.answer(scripts.instant()[1], agent="writer").model == "second"
    assert house.answer(scripts.instant()[1], agent="writer", model_name="third").model == "third"


def test_a_childs_tools_and_skills_are_within_its_leads(house: House, model: ScriptedModel):
    house.manage("scout", skills=["prose", "law"], tools=["read_file", "write_file", "ls"])
    house.agent("writer", tools=["read_file"], skills=["law", "sums"])
    children = [scripts.instant(), scripts.instant()]
    calls = [scripts.task_call("a", children[0][1]), scripts.task_call("b", children[1][1], subagent="scout")]
    run = house.answer(scripts.script({"calls": calls}, {})[1], agent="writer")
    assert [call.tool_names for one in children for call in model.calls_of(one[0])] == [("read_file",)] * 2
    assert {child.agent: child.definition["skills"] for child in house.children(run)} == {
        "general-purpose": ["law", "sums"],
        "scout": ["law"],
    }


@pytest.mark.parametrize(("tools", "allowed"), list(product([None, [], ["read_file"]], [None, [], ["scout"]])), ids=str)
def test_null_nothing_and_a_list_are_three_different_things(
    house: House, model: ScriptedModel, tools: list[str] | None, allowed: list[str] | None
):
    house.manage("scout")
    house.agent("writer", tools=tools, allowed_subagents=allowed)
    run = house.answer(scripts.instant()[1], agent="writer")
    (call,) = model.requests
    permitted = ["general-purpose", "scout"] if allowed is None else allowed
    own = ["ls", "read_file", "write_file", "str_replace", "glob", "grep"] if tools is None else tools
    assert sorted(set(call.tool_names) - {"task"}) == sorted(own)
    assert run.metadata["allowed_subagents"] == permitted
    assert enum_of(call) == (permitted or None)
    assert roster_of(call) == permitted


# --- Whom it may call -------------------------------------------------------------------------------------------
def test_prompt_tool_and_registry_name_the_same_subagents(house: House, model: ScriptedModel):
    for name in ("scout", "clerk", "hidden", "off"):
        house.manage(name, enabled=name != "off")
    house.agent("writer", allowed_subagents=["scout", "gone", "off", "clerk", "bash"])
    run = house.answer(scripts.instant()[1], agent="writer")
    (call,) = model.requests
    assert roster_of(call) == enum_of(call) == run.metadata["allowed_subagents"] == ["clerk", "scout"]
    assert "hidden" not in str(call.body)


@pytest.mark.parametrize("written", ["coder", "Coder", " `CODER` ", '["coder"]', "co_der"])
def test_a_hidden_subagent_is_refused_as_one_that_does_not_exist(house: House, written: str):
    house.manage("coder")
    house.manage("writer-friend")
    house.agent("writer", allowed_subagents=["writer-friend"])
    hidden = refusals(house, house.answer(call_of(written)[1], agent="writer"))
    definitions.delete(SUBAGENT, "coder", expected_version="1", actor=TESTS)
    missing = refusals(house, house.answer(call_of(written)[1], agent="writer"))
    assert hidden == missing
    assert hidden[0].endswith("Permitted subagents: writer-friend.")


def test_refused_names_start_nothing_and_use_up_nothing(house: House):
    house.manage("coder")
    house.manage("scout")
    house.agent("writer", allowed_subagents=["scout"])
    wrong = [scripts.task_call("x", "x", subagent=name) for name in ("coder", "CODER", "general-purpose", "nobody")]
    right = scripts.task_call("part", scripts.instant()[1], subagent="Scout")
    run = house.answer(
        scripts.script({"calls": wrong}, {"calls": [right]}, {})[1], agent="writer", max_total_subagents=1
    )
    assert [child.agent for child in house.children(run)] == ["scout"]
    assert len(refusals(house, run)) == 4


def disable(house: House) -> None:
    definitions.set_enabled(SUBAGENT, ["scout"], False, actor=TESTS)


def delete(house: House) -> None:
    definitions.delete(SUBAGENT, "scout", expected_version="1", actor=TESTS)


def shadow(house: House) -> None:
    """config.yaml takes the name with an entry that cannot be read: nobody may run under it."""
    house.configure(subagents={"custom_agents": {"scout": {"description": "Other."}}})


@pytest.mark.parametrize("change", [disable, delete, shadow])
def test_what_happens_to_a_permitted_subagent_in_the_middle_of_a_run_stops_its_next_dispatch(
    house: House, model: ScriptedModel, change: Any
):
    house.manage("scout")
    house.manage("hidden")
    house.manage("clerk")
    house.agent("writer", allowed_subagents=["scout", "clerk"])
    lead_id, prompt = call_of("scout", gate="changed")
    run = house.ask(prompt, agent="writer")
    with Worker():
        house.until_calls(lead_id)
        change(house)
        model.open_gate("changed")
        (run,) = house.until_ended(run)
    (refusal,) = refusals(house, run)
    assert "scout is not available" in refusal
    assert refusal.endswith("Permitted subagents: clerk.")
    assert house.children(run) == []
    assert "hidden" not in refusal


@pytest.mark.parametrize(("before", "after"), [(["clerk"], ["scout", "clerk"]), (["scout"], []), (["scout"], None)])
def test_a_change_of_the_scope_counts_from_the_next_run_on(
    house: House, model: ScriptedModel, before: list[str], after: list[str] | None
):
    for name in ("scout", "clerk"):
        house.manage(name)
    house.agent("writer", allowed_subagents=before)
    lead_id, prompt = call_of("scout", gate="changed")
    run = house.ask(prompt, agent="writer")
    with Worker():
        house.until_calls(lead_id)
        house.agent("writer", allowed_subagents=after)
        model.open_gate("changed")
        (run,) = house.until_ended(run)
    assert run.metadata["allowed_subagents"] == before
    assert len(house.children(run)) == ("scout" in before)
    again = house.answer(call_of("scout")[1], thread=run.thread)
    assert len(house.children(again)) == (after is None or "scout" in after)


NO_DELEGATION: Sequence[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"allowed_subagents": []}, {"subagent_enabled": True}, "scope_none"),
    ({"allowed_subagents": [], "subagent_enabled": False}, {}, "scope_none"),
    ({"subagent_enabled": False}, {"subagent_enabled": True}, "agent"),
    ({}, {"subagent_enabled": False}, "request"),
    ({"allowed_subagents": ["gone"]}, {"subagent_enabled": True}, "scope_empty"),
]


@pytest.mark.parametrize(("agent", "options", "reason"), NO_DELEGATION, ids=str)
def test_why_nobody_may_be_called_stands_on_the_run_and_no_request_opens_it_again(
    house: House, model: ScriptedModel, agent: dict[str, Any], options: dict[str, Any], reason: str
):
    house.agent("writer", **agent)
    run = house.answer(call_of("general-purpose")[1], agent="writer", **options)
    call = model.requests[0]
    assert (enum_of(call), roster_of(call)) == (None, [])
    assert house.children(run) == []
    assert (run.metadata["allowed_subagents"], run.metadata["delegation_off"]) == ([], reason)
    assert "Do the work yourself" in refusals(house, run)[0]


# --- Which agent ------------------------------------------------------------------------------------------------
def test_a_thread_goes_on_with_its_agent_until_another_is_named(house: House):
    house.agent("writer")
    first = house.answer(scripts.instant()[1], agent_name=" Writer ")
    second = house.answer(scripts.instant()[1], thread=first.thread)
    third = house.answer(scripts.instant()[1], thread=first.thread, agent_name="lead-agent")
    fourth = house.answer(scripts.instant()[1], thread=first.thread)
    assert [run.agent for run in (first, second, third, fourth)] == ["writer", "writer", "lead_agent", "lead_agent"]


def switch_off(house: House) -> None:
    house.agent("writer", enabled=False)


def remove(house: House) -> None:
    definitions.delete(AGENT, "writer", expected_version="1", actor=TESTS)


@pytest.mark.parametrize("change", [switch_off, remove])
def test_an_agent_that_goes_before_the_run_begins_ends_it_with_its_reason(
    house: House, model: ScriptedModel, change: Any
):
    house.agent("writer")
    run = house.ask("Hello", agent="writer")
    change(house)
    house.work()
    run = house.again(run)
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.AGENT_UNKNOWN)
    assert model.requests == []
    assert house.answer("Again", thread=run.thread).error_code == ErrorCode.AGENT_UNKNOWN
    other = house.answer(scripts.instant()[1], thread=run.thread, agent_name="lead_agent")
    assert other.status == RunStatus.SUCCESS


def test_a_running_run_keeps_what_it_began_with_and_the_next_gets_the_new_settings(house: House, model: ScriptedModel):
    house.configure(runs={"timeout_seconds": 600})
    house.agent("writer", system_prompt="The old words.")
    lead_id, prompt = scripts.script({"calls": [scripts.call("ls")], "gate": "changed"}, {}, kind="lead")
    run = house.ask(prompt, agent="writer")
    with Worker():
        house.until_calls(lead_id)
        house.configure(runs={"timeout_seconds": 700})
        house.agent("writer", system_prompt="The new words.")
        model.open_gate("changed")
        (run,) = house.until_ended(run)
    assert [call.system_text.split("\n")[0] for call in model.calls_of(lead_id)] == ["The old words."] * 2
    again = house.answer(scripts.instant()[1], thread=run.thread)
    kept = [(one.definition["limits"]["timeout_seconds"], one.definition["version"]) for one in (run, again)]
    assert kept == [(600, "1"), (700, "2")]
