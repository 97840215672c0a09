"""Guards end a run early but cleanly; the clock ends it late but keeps what it had."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from runs.event_types import EventType
from runs.statuses import ErrorCode, RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel

LOOK = scripts.call("ls")


def test_a_turn_cap_with_an_answer_is_a_success_that_says_why_it_stopped(house: House):
    house.configure(runs={"max_turns": 2})
    run = house.answer(scripts.script({"calls": [LOOK], "text": "So far: nothing."})[1])
    assert (run.status, run.stop_reason, run.model_calls) == (RunStatus.SUCCESS, "turn_capped", 2)
    (ended,) = house.events(run, EventType.RUN_ENDED)
    assert ended["detail"]["limit"] == 2
    assert ended["detail"]["layer"] == "runs.max_turns"
    assert "2 model calls (runs.max_turns)" in ended["why"]


def test_a_turn_cap_without_an_answer_is_an_error(house: House):
    house.configure(runs={"max_turns": 2})
    run = house.answer(scripts.tool_loop("ls", {})[1])
    assert (run.status, run.stop_reason, run.error_code) == (RunStatus.ERROR, "turn_capped", ErrorCode.NO_ANSWER)


def test_a_run_that_finishes_on_its_last_turn_was_not_capped(house: House):
    house.configure(runs={"max_turns": 2})
    run = house.answer(scripts.script({"calls": [LOOK]}, {"text": "Done."})[1])
    assert (run.status, run.stop_reason) == (RunStatus.SUCCESS, "")


def test_a_subagents_cap_is_told_to_its_lead_with_what_it_had(house: House):
    house.configure(subagents={"agents": {"general-purpose": {"max_turns": 1}}})
    child = scripts.script({"calls": [LOOK], "text": "Half of it."})
    run = house.answer(scripts.delegate_to([child])[1])
    assert (run.status, run.stop_reason) == (RunStatus.SUCCESS, "")
    (result,) = house.results(run)
    assert result["artifact"]["subagent_status"] == "completed"
    assert result["artifact"]["subagent_stop_reason"] == "turn_capped"
    assert "Half of it." in str(result["content"])


def test_a_token_budget_ends_a_subagent_that_has_an_answer(house: House):
    house.configure(subagents={"agents": {"general-purpose": {"token_budget": {"max_tokens": 500}}}})
    child = scripts.script({"calls": [LOOK], "text": "As far as it went.", "usage": [400, 60]})
    run = house.answer(scripts.delegate_to([child])[1])
    (capped,) = house.children(run)
    assert (capped.status, capped.stop_reason) == (RunStatus.SUCCESS, "token_capped")
    assert capped.total_tokens == 920
    (ended,) = house.events(capped, EventType.RUN_ENDED)
    assert ended["detail"]["limit"] == 500
    assert ended["detail"]["layer"] == "subagents.agents.general-purpose.token_budget.max_tokens"


def test_a_token_budget_without_an_answer_is_an_error(house: House):
    house.configure(subagents={"token_budget": {"max_tokens": 500}})
    run = house.answer(scripts.script({"calls": [LOOK], "usage": [400, 200]})[1])
    assert (run.status, run.stop_reason) == (RunStatus.ERROR, "token_capped")


def test_the_budget_of_the_tree_counts_lead_and_children_together(house: House):
    house.configure(runs={"token_budget": {"max_tokens": 1000}})
    child = scripts.script({"text": "Found.", "usage": [500, 200]})
    calls = [scripts.task_call("part", child[1])]
    lead = scripts.script(
        {"calls": calls, "usage": [100, 50]}, {"calls": [LOOK], "text": "With what I have.", "usage": [100, 60]}
    )
    run = house.answer(lead[1])
    assert (run.status, run.stop_reason) == (RunStatus.SUCCESS, "token_capped")
    assert house.said(run) == "With what I have."
    (ended,) = house.events(run, EventType.RUN_ENDED)
    assert ended["detail"]["layer"] == "runs.token_budget"
    assert ended["detail"]["scope"] == "tree"


def test_a_provider_that_reports_no_usage_is_estimated_for_the_guard_and_unknown_on_the_run(house: House):
    house.configure(subagents={"token_budget": {"max_tokens": 500}})
    run = house.answer(scripts.script({"calls": [LOOK], "text": "word " * 600, "no_usage": True})[1])
    assert (run.status, run.stop_reason) == (RunStatus.SUCCESS, "token_capped")
    assert run.total_tokens is None


def test_a_subagent_that_runs_out_of_time_keeps_its_words_and_leaves_the_lead_alive(house: House):
    house.configure(subagents={"agents": {"general-purpose": {"timeout_seconds": 1}}})
    slow = scripts.says("Some of the way and more", gate="never", gate_after=3)
    quick = scripts.instant()
    run = house.answer(scripts.delegate_to([slow, quick])[1])
    assert run.status == RunStatus.SUCCESS
    timed_out, fine = house.children(run)
    assert (timed_out.status, timed_out.error_code) == (RunStatus.TIMEOUT, ErrorCode.TIMED_OUT)
    assert fine.status == RunStatus.SUCCESS
    assert house.said(timed_out) == "Some of the "
    (ended,) = house.events(timed_out, EventType.RUN_ENDED)
    assert ended["detail"] == {"limit": 1, "layer": "subagents.agents.general-purpose.timeout_seconds"}
    result = next(r for r in house.results(run) if r["artifact"]["child_run_id"] == str(timed_out.pk))
    assert result["artifact"]["subagent_status"] == "timed_out"
    assert str(result["content"]).endswith("Some of the")


def test_a_lead_that_runs_out_of_time_stops_its_children(house: House, model: ScriptedModel):
    house.configure(runs={"timeout_seconds": 1})
    child = scripts.gated("never")
    run = house.answer(scripts.delegate_to([child])[1])
    assert run.status == RunStatus.TIMEOUT
    (stopped,) = house.children(run)
    assert (stopped.status, stopped.cancelled_by) == (RunStatus.CANCELLED, "parent")
    assert stopped.ended_at is not None
    assert run.ended_at is not None
    assert stopped.ended_at - run.ended_at < timedelta(seconds=2)  # told by the lead, not found by the regular sweep
    assert model.calls_of(child[0])[0].disconnected_at is not None
    again = house.answer(scripts.instant()[1], thread=run.thread)
    assert again.status == RunStatus.SUCCESS


def test_time_in_the_queue_does_not_count(house: House):
    house.configure(runs={"timeout_seconds": 1})
    first = scripts.gated("first")
    one = house.ask(first[1])
    two = house.ask(scripts.instant()[1], thread=one.thread)
    with Worker():
        assert house.until_ended(one)[0].status == RunStatus.TIMEOUT
        assert house.until_ended(two)[0].status == RunStatus.SUCCESS
