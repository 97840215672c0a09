from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runs.event_types import EventType
from runs.statuses import ErrorCode, RunStatus
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel


def lead_of(count: int) -> tuple[list[str], str]:
    children = [scripts.instant() for _ in range(count)]
    return [script_id for script_id, _ in children], scripts.delegate_to(children)[1]


def test_a_request_can_switch_delegation_off(house: House, model: ScriptedModel):
    child_ids, prompt = lead_of(2)
    run = house.answer(prompt, subagent_enabled=False)
    assert run.status == RunStatus.SUCCESS
    assert house.children(run) == []
    assert run.metadata["allowed_subagents"] == []
    assert run.metadata["delegation_off"] == "request"
    assert house.events(run, EventType.RUN_NOTED)[0]["delegation_off"] == "request"
    assert "task" not in model.requests[0].tool_names
    assert "general-purpose" not in model.requests[0].system_text
    assert not any(model.calls_of(script_id) for script_id in child_ids)
    assert len(house.results(run)) == 2


def test_calls_above_the_limit_of_one_reply_are_answered_without_being_started(house: House, model: ScriptedModel):
    _ids, prompt = lead_of(3)
    run = house.answer(prompt, max_concurrent_subagents=1)
    assert run.status == RunStatus.SUCCESS
    assert len(house.children(run)) == 1
    refused = [result for result in house.results(run) if "Not started" in str(result["content"])]
    assert len(refused) == 2
    assert all("at most 1" in str(result["content"]) for result in refused)
    assert "at most one task call in one reply" in model.requests[0].system_text


def test_the_total_of_a_run_counts_over_its_replies_and_then_takes_the_tool_away(house: House, model: ScriptedModel):
    calls = [scripts.task_call("part", scripts.instant()[1]) for _ in range(4)]
    lead_id, prompt = scripts.script({"calls": calls[:1]}, {"calls": calls[1:]}, {})
    run = house.answer(prompt, max_total_subagents=2)
    assert run.status == RunStatus.SUCCESS
    assert len(house.children(run)) == 2
    assert sum("they are used up" in str(result["content"]) for result in house.results(run)) == 2
    offered = ["task" in call.tool_names for call in model.calls_of(lead_id)]
    assert offered == [True, True, False]


def test_a_refused_name_does_not_use_up_the_total(house: House):
    wrong = scripts.task_call("part", "x", subagent="nobody")
    right = scripts.task_call("part", scripts.instant()[1])
    run = house.answer(scripts.script({"calls": [wrong, wrong, right]}, {})[1], max_total_subagents=1)
    assert len(house.children(run)) == 1


def test_an_earlier_run_of_the_thread_does_not_count(house: House):
    first = house.answer(lead_of(1)[1], max_total_subagents=1)
    second = house.answer(lead_of(1)[1], thread=first.thread, max_total_subagents=1)
    assert len(house.children(second)) == 1


def test_numbers_out_of_range_are_clamped_and_the_clamp_stands_on_the_run(house: House):
    run = house.answer(scripts.instant()[1], max_concurrent_subagents=49, max_total_subagents=99)
    assert run.definition["limits"]["max_concurrent_subagents"] == 4
    assert run.definition["limits"]["max_total_subagents"] == 50
    assert run.metadata["clamped"] == {"max_concurrent_subagents": [49, 4], "max_total_subagents": [99, 50]}
    assert house.events(run, EventType.RUN_NOTED)[0]["clamped"] == run.metadata["clamped"]


def test_a_number_that_two_bounds_change_is_noted_as_it_was_asked_for(house: House):
    run = house.answer(scripts.instant()[1], max_concurrent_subagents=1_000)
    assert run.metadata["clamped"] == {"max_concurrent_subagents": [1_000, 4]}


def test_a_run_that_goes_as_asked_notes_nothing(house: House):
    run = house.answer(scripts.instant()[1], max_concurrent_subagents=2, subagent_enabled=True)
    assert set(run.metadata) == {"allowed_subagents"}
    assert house.events(run, EventType.RUN_NOTED) == []


def test_a_thread_remembers_that_delegation_is_off_until_a_request_says_otherwise(house: House):
    first = house.answer(lead_of(1)[1], subagent_enabled=False)
    second = house.answer(lead_of(1)[1], thread=first.thread)
    assert second.options == {"subagent_enabled": False}
    assert house.children(second) == []
    third = house.answer(lead_of(1)[1], thread=first.thread, subagent_enabled=True)
    fourth = house.answer(lead_of(1)[1], thread=first.thread)
    assert [len(house.children(run)) for run in (third, fourth)] == [1, 1]


def test_a_message_that_waits_remembers_what_the_one_before_it_asked_for(house: House):
    first = house.ask("One", subagent_enabled=False)
    second = house.ask("Two", thread=first.thread)
    third = house.ask("Three", thread=first.thread)
    assert [house.again(run).options for run in (second, third)] == [{"subagent_enabled": False}] * 2
    house.work()


def test_a_client_cannot_give_itself_permissions(house: House):
    run = house.answer(scripts.instant()[1], allowed_subagents=["root"], owner=1, limits={"max_turns": 9999})
    assert run.metadata["allowed_subagents"] == ["general-purpose"]
    assert run.definition["limits"]["max_turns"] == 200


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"model_name": "nowhere"}, ErrorCode.MODEL_UNKNOWN, "nowhere"),
        ({"model_name": "keyless"}, ErrorCode.MODEL_UNAVAILABLE, "UNSET_KEY_OF_THE_TESTS"),
        ({"agent_name": "stranger"}, ErrorCode.AGENT_UNKNOWN, "no agent"),
    ],
)
def test_what_cannot_run_ends_with_its_reason_and_leaves_the_thread_usable(
    house: House, model: ScriptedModel, options: dict[str, str], code: ErrorCode, words: str
):
    keyless = {"name": "keyless", "use": "langchain_openai:ChatOpenAI", "api_key": "$UNSET_KEY_OF_THE_TESTS"}
    house.configure(more_models=[keyless])
    run = house.answer("Hello", **options)
    assert (run.status, run.error_code) == (RunStatus.ERROR, code)
    assert words in run.error
    assert model.requests == []
    model.replies(["Better now."])
    again = house.answer("Once more", thread=run.thread, agent="lead_agent")
    assert again.status == RunStatus.SUCCESS
    assert house.said(again) == "Better now."


def test_an_unknown_agent_is_an_error_of_the_run(house: House):
    run = house.answer("Hello", agent="stranger")
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.AGENT_UNKNOWN)


def test_no_model_at_all_says_so(house: House):
    house.configure(models=[])
    run = house.answer("Hello")
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.MODEL_UNAVAILABLE)
    assert "No model is configured" in run.error


def test_a_workspace_that_cannot_be_made_is_said_at_once(house: House, tmp_path):
    (tmp_path / "workspaces").write_text("not a folder")
    run = house.answer("Hello")
    assert (run.status, run.error_code, run.attempt) == (RunStatus.ERROR, ErrorCode.INTERNAL, 1)


THINKS = {
    "when_thinking_enabled": {"extra_body": {"think": "long"}},
    "when_thinking_disabled": {"extra_body": {"think": "no"}},
}


@pytest.mark.parametrize(
    ("subagents", "options", "expected"),
    [
        ({}, {}, ("long", "no")),
        ({}, {"thinking_enabled": False}, ("no", "no")),
        ({"thinking_enabled": True}, {}, ("long", "long")),
        (
            {"thinking_enabled": True, "agents": {"general-purpose": {"thinking_enabled": False}}},
            {},
            ("long", "no"),
        ),
        ({"agents": {"general-purpose": {"thinking_enabled": True}}}, {}, ("long", "long")),
    ],
)
def test_a_lead_thinks_at_length_and_a_subagent_does_not_unless_it_is_set(
    house: House, model: ScriptedModel, subagents, options, expected
):
    house.configure(subagents=subagents, more_models=[{**house.scripted_entry("thinker"), **THINKS}])
    (child_id,), prompt = lead_of(1)
    run = house.answer(prompt, model_name="thinker", **options)
    assert run.status == RunStatus.SUCCESS
    (of_child,) = model.calls_of(child_id)
    assert (model.requests[0].body["think"], of_child.body["think"]) == expected
