from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from runs.event_types import EventType
from runs.statuses import RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts
from tests.scripted_model.plan import Planner

if TYPE_CHECKING:
    from runs.models import Run
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel

QUESTION = "Compare SQLite, PostgreSQL and MySQL for a small team."


@pytest.fixture
def lead(house: House, model: ScriptedModel) -> Run:
    """A lead that gave three parts to three subagents, read what they wrote and answered."""
    model.responder(Planner())
    run = house.answer(QUESTION)
    assert run.status == RunStatus.SUCCESS, run.error
    return run


def test_a_lead_answers_from_the_files_of_three_subagents(house: House, lead: Run):
    children = house.children(lead)
    assert [child.status for child in children] == ["success"] * 3
    read = [result for result in house.results(lead) if result["name"] == "read_file"]
    assert len(read) == 3
    for subject in ("SQLite", "PostgreSQL", "MySQL"):
        assert any(subject in str(result["content"]) for result in read)
        assert subject in house.said(lead)
    assert len(list(house.file(lead, ".").glob("*.md"))) == 3


def test_the_subagents_work_at_the_same_time(house: House, model: ScriptedModel):
    children = [scripts.gated("go") for _ in range(3)]
    run = house.ask(scripts.delegate_to(children)[1])
    with Worker():
        house.until_calls(*(script_id for script_id, _ in children))
        house.until(lambda: house.again(run).waiting_for == "children")
        model.open_gate("go")
        house.until_ended(run)
    assert house.again(run).status == RunStatus.SUCCESS


def test_a_subagent_sees_its_prompt_and_nothing_of_the_conversation(house: House, lead: Run, model: ScriptedModel):
    first_calls = [call for call in model.requests if "task" not in call.tool_names and call.message_count == 2]
    assert len(first_calls) == 3
    prompts = {call.user_text for call in first_calls}
    assert prompts == {house.messages(child)[0]["content"] for child in house.children(lead)}
    for call in first_calls:
        assert [message["role"] for message in call.messages] == ["system", "user"]
        assert call.system_text != model.requests[0].system_text


def test_both_threads_tell_the_story_in_the_order_it_happened(house: House, lead: Run):
    (child, *_others) = house.children(lead)
    own = [event["event"] for event in house.events(child) if event["event"] != EventType.DELTA]
    assert own == [
        EventType.RUN_QUEUED,
        EventType.MESSAGE,
        EventType.RUN_STARTED,
        EventType.MESSAGE,
        EventType.MESSAGE,
        EventType.MESSAGE,
        EventType.RUN_ENDED,
    ]
    told = [event for event in house.events(lead) if event.get("task") == str(child.pk)]
    kinds = [event["event"] for event in told]
    assert kinds[:2] == [EventType.TASK_CREATED, EventType.TASK_STARTED]
    assert kinds[-1] == EventType.TASK_ENDED
    steps = [event["kind"] for event in told if event["event"] == EventType.TASK_STEP]
    assert steps == ["text", "tool", "tool_result", "text"]
    waits = [event.get("waiting_for") for event in house.events(lead, EventType.RUN_WAITING)]
    assert waits[0] == "children"
    assert waits[-1] is None


def test_a_card_carries_what_was_asked_and_what_came_of_it(house: House, lead: Run):
    children = house.children(lead)
    created = house.events(lead, EventType.TASK_CREATED)
    ended = {event["task"]: event for event in house.events(lead, EventType.TASK_ENDED)}
    assert [event["task"] for event in created] == [str(child.pk) for child in children]
    for event, child in zip(created, children, strict=True):
        assert event["thread"] == str(child.thread_id)
        assert event["subagent"] == "general-purpose"
        assert event["model"] == "scripted"
        assert event["max_turns"] == 150
        end = ended[event["task"]]
        assert end["status"] == "success"
        assert end["model_calls"] == child.model_calls == 2
        assert end["total_tokens"] == child.total_tokens
        assert end["result"] == house.said(child)


def test_the_result_of_a_delegation_carries_its_facts(house: House, lead: Run):
    results = [result for result in house.results(lead) if result["name"] == "task"]
    by_id = {str(child.pk): child for child in house.children(lead)}
    assert {result["artifact"]["child_run_id"] for result in results} == set(by_id)
    for result in results:
        child = by_id[result["artifact"]["child_run_id"]]
        assert result["artifact"]["subagent_status"] == "completed"
        assert result["artifact"]["usage"]["total_tokens"] == child.total_tokens
        assert result["content"] == house.said(child)
        assert result["tool_call_id"] == child.tool_call_id


def test_usage_is_counted_once(house: House, lead: Run, model: ScriptedModel):
    runs = [lead, *house.children(lead)]
    assert sum(run.model_calls for run in runs) == len(model.requests)
    assert lead.model_calls == 3
    assert lead.total_tokens


def test_a_run_keeps_exactly_what_it_ran_with(house: House, lead: Run, model: ScriptedModel):
    assert lead.metadata["allowed_subagents"] == ["general-purpose"]
    assert lead.definition["model"] == lead.model == "scripted"
    assert set(lead.definition["tools"]) | {"task"} == set(model.requests[0].tool_names)
    assert lead.definition["limits"]["max_total_subagents"] == 6
    for child in house.children(lead):
        assert child.definition["agent"] == "general-purpose"
        assert child.definition["source"] == "builtin"
        assert set(child.definition["tools"]) <= set(lead.definition["tools"])
        assert "task" not in child.definition["tools"]
        assert child.definition["system_prompt"] in model.requests[1].system_text


def test_a_chinese_question_gets_three_other_briefs(house: House, model: ScriptedModel):
    model.responder(Planner())
    run = house.answer("请比较三种数据库的备份方案")
    assert run.status == RunStatus.SUCCESS
    prompts = {house.messages(child)[0]["content"] for child in house.children(run)}
    assert len(prompts) == 3
    assert all("备份" in prompt for prompt in prompts)


def test_text_that_no_database_could_hold_goes_through_every_step(house: House):
    nasty = "a\x00b\ud800c"
    child = scripts.script(
        {"calls": [scripts.call("write_file", path="n.md", content=nasty)], "text": nasty}, {"text": nasty}
    )
    run = house.answer(scripts.delegate_to([child])[1] + "\x00\ud800")
    assert run.status == RunStatus.SUCCESS, run.error
    (delegated,) = house.children(run)
    assert delegated.status == RunStatus.SUCCESS
    stored = json.dumps([house.messages(run), house.events(run), house.events(delegated)])
    assert "\\u0000" not in stored
    assert "\\ud800" not in stored
