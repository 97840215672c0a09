"""Continue: a run goes on from where another was stopped, with the limit raised that stopped it, within its ceiling."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson
import pytest
from pytest import MonkeyPatch

from engine.limits import Limits, TokenLimit
from runs import raising, services
from runs.continuing import continue_run
from runs.errors import BadInput, NotContinuable, RunNotFound, ThreadBusy
from runs.event_types import EventType
from runs.lifecycle import Ending, Finish, Held, commit_one
from runs.models import Run, Thread, new_id
from runs.statuses import RunStatus, ThreadStatus
from runs.worker import sweep
from subagents import registry
from subagents.matching import Refusal
from tests.runs.acts import ai, claimed, events, finish, start_child, transcript
from tests.runs.invariants import assert_queue_whole, assert_whole

pytestmark = pytest.mark.django_db
LIMITS = Limits(max_turns=50, timeout_seconds=1800, tokens=TokenLimit(max_tokens=1000))


@pytest.fixture
def lead(thread: Thread) -> Held:
    return claimed(services.start_run(thread=thread, text="hello"))


@pytest.fixture(autouse=True)
def scout_may_run(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "resolve_dispatch", lambda name, allowed: object())


def capped(held: Held, stop_reason: str = "turn_capped", limit: int = 50, layer: str = "default") -> None:
    ending = Ending(
        status=RunStatus.SUCCESS, stop_reason=stop_reason, detail={"limit": limit, "layer": layer}, result="Half of it."
    )
    commit_one(Finish(held=held, ending=ending, entries=[ai("Half of it.")]))


def capped_child(lead: Held, **how: Any) -> Held:
    definition = {"limits": asdict(LIMITS), "model": "demo", "display_name": "Scout"}
    child = claimed(start_child(lead, definition=definition))
    capped(child, **how)
    return child


# --- leads --------------------------------------------------------------------------------------------------------
def test_a_capped_lead_goes_on_on_its_thread_with_twice_the_limit(thread, lead):
    capped(lead)
    run = continue_run(run_id=lead.run_id)
    assert (run.thread_id, run.continues_id, run.agent) == (thread.pk, lead.run_id, "lead_agent")
    assert run.options["raised"] == {"max_turns": 100}
    *_before, answer, request = transcript(thread)
    assert answer == "ai: Half of it."
    assert request.startswith("human: Continue where you stopped.")
    assert_whole([thread.pk])
    assert_queue_whole()


@pytest.mark.parametrize(
    ("ending", "raised"),
    [
        (Ending(status=RunStatus.TIMEOUT, detail={"limit": 3600}), {"timeout_seconds": 7200}),
        (Ending(status=RunStatus.SUCCESS, stop_reason="token_capped", detail={"limit": 500}), {"max_tokens": 1000}),
        (Ending(status=RunStatus.ERROR, stop_reason="turn_capped", detail={"limit": 900}), {"max_turns": 1000}),
        (Ending(status=RunStatus.ERROR, stop_reason="turn_capped", detail={"limit": 1000}), {}),
        (Ending(status=RunStatus.SUCCESS, stop_reason="loop_capped", detail={"limit": 5}), {}),
        (Ending(status=RunStatus.ERROR, error_code="model_server_error"), {}),
        (Ending(status=RunStatus.CANCELLED), {}),
    ],
)
def test_only_the_limit_that_stopped_it_is_raised_and_never_past_its_ceiling(lead, ending, raised):
    commit_one(Finish(held=lead, ending=ending))
    assert continue_run(run_id=lead.run_id).options["raised"] == raised


def test_somebody_may_say_how_far(lead):
    capped(lead)
    assert continue_run(run_id=lead.run_id, limits={"max_turns": 60}).options["raised"] == {"max_turns": 60}


def test_what_was_raised_before_stays_raised(lead):
    capped(lead)
    second = claimed(continue_run(run_id=lead.run_id))
    capped(second, "token_capped", 500)
    assert continue_run(run_id=second.run_id).options["raised"] == {"max_turns": 100, "max_tokens": 1000}


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"max_turns": 1001}, "limits.max_turns"),
        ({"max_turns": 0}, "limits.max_turns"),
        ({"max_turns": True}, "limits.max_turns"),
        ({"max_turns": "60"}, "limits.max_turns"),
        ({"timeout_seconds": 86_401}, "limits.timeout_seconds"),
        ({"tree_tokens": 5}, "limits.tree_tokens"),
        ([], "limits"),
    ],
)
def test_a_limit_out_of_bounds_is_refused_with_its_name(lead, limits, field):
    capped(lead)
    with pytest.raises(BadInput) as refused:
        continue_run(run_id=lead.run_id, limits=limits)
    assert refused.value.field == field


def test_what_is_finished_or_still_runs_cannot_be_continued(thread, lead):
    with pytest.raises(NotContinuable):
        continue_run(run_id=lead.run_id)
    finish(lead, answer="All of it.")
    with pytest.raises(NotContinuable):
        continue_run(run_id=lead.run_id)


def test_only_the_newest_run_of_a_thread_can_be_continued(thread, lead):
    capped(lead)
    services.start_run(thread=thread, text="never mind")
    with pytest.raises(NotContinuable):
        continue_run(run_id=lead.run_id)


def test_of_two_that_continue_at_once_one_is_refused(lead):
    capped(lead)
    continue_run(run_id=lead.run_id)
    with pytest.raises((NotContinuable, ThreadBusy)):
        continue_run(run_id=lead.run_id)


def test_a_run_that_does_not_exist_is_said():
    with pytest.raises(RunNotFound):
        continue_run(run_id=new_id())


def test_a_client_cannot_raise_limits_by_itself(thread):
    run = services.start_run(thread=thread, text="hello", options={"raised": {"max_turns": 1000}})
    assert "raised" not in run.options


# --- children -----------------------------------------------------------------------------------------------------
def test_a_capped_child_goes_on_on_its_own_thread_with_a_card_of_its_own(thread, lead):
    child = capped_child(lead)
    run = continue_run(run_id=child.run_id)
    assert (run.thread_id, run.parent_id, run.root_id, run.depth) == (child.thread_id, lead.run_id, lead.run_id, 1)
    assert (run.definition["limits"]["max_turns"], run.definition["limits"]["max_turns_layer"]) == (100, "request")
    *_first, card = [orjson.loads(event.data) for event in events(thread, EventType.TASK_CREATED)]
    assert (card["task"], card["thread"], card["max_turns"]) == (str(run.pk), str(child.thread_id), 100)
    assert_whole([thread.pk, child.thread_id])
    assert_queue_whole()


def test_its_answer_reaches_the_lead_as_a_message_when_the_lead_has_ended(thread, lead):
    child = capped_child(lead)
    finish(lead, answer="With half of it.")
    again = claimed(continue_run(run_id=child.run_id))
    commit_one(Finish(held=again, ending=Ending(status=RunStatus.SUCCESS, result="All."), entries=[ai("All.")]))
    thread.refresh_from_db()
    assert thread.status == ThreadStatus.BUSY
    newest = Run.objects.filter(thread=thread).latest("created_at")
    assert newest.agent == "lead_agent"
    assert "All." in transcript(thread)[-1]
    assert_whole([thread.pk, child.thread_id])
    assert_queue_whole()


def test_while_the_lead_still_works_the_message_waits_its_turn(thread, lead):
    child = capped_child(lead)
    again = claimed(continue_run(run_id=child.run_id))
    finish(again, answer="All.")
    waiting = Run.objects.get(thread=thread, status=RunStatus.PENDING)
    assert waiting.queue_id is None
    finish(lead, answer="With half of it.")
    assert transcript(thread)[-2] == "ai: With half of it."
    assert_whole([thread.pk, child.thread_id])


@pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.ERROR, RunStatus.TIMEOUT])
def test_one_that_does_not_succeed_starts_nothing(thread, lead, status):
    child = capped_child(lead)
    finish(lead)
    finish(claimed(continue_run(run_id=child.run_id)), status)
    assert not Run.objects.active().exists()


def test_the_sweep_leaves_it_alone_although_its_lead_has_ended(lead):
    child = capped_child(lead)
    finish(lead)
    run = continue_run(run_id=child.run_id)
    sweep.sweep()
    run.refresh_from_db()
    assert run.status == RunStatus.PENDING


def test_stopping_the_answer_leaves_it_and_stopping_all_does_not(thread, lead):
    child = capped_child(lead)
    run = continue_run(run_id=child.run_id)
    stopped = services.stop_run(run_id=lead.run_id, by="lin")
    assert [one.kind for one in stopped] == ["answer"]
    told = services.stop_all(thread_id=thread.pk, by="lin")
    assert [(one.kind, one.agent, one.title) for one in told][-1] == ("task", "scout", "Find sources")
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED


def test_a_subagent_that_was_switched_off_does_not_go_on(lead, monkeypatch):
    child = capped_child(lead)
    monkeypatch.setattr(registry, "resolve_dispatch", lambda name, allowed: Refusal("no"))
    with pytest.raises(NotContinuable):
        continue_run(run_id=child.run_id)


def test_a_budget_over_the_whole_tree_cannot_be_raised_from_below(lead):
    child = capped_child(lead, stop_reason="token_capped", layer="runs.token_budget")
    with pytest.raises(NotContinuable):
        continue_run(run_id=child.run_id)


# --- the numbers --------------------------------------------------------------------------------------------------
def test_raising_lowers_nothing_and_says_where_the_number_comes_from():
    raised = raising.with_raised(LIMITS, {"max_turns": 40, "timeout_seconds": 3600, "max_tokens": 5000})
    assert (raised.max_turns, raised.max_turns_layer) == (50, "default")
    assert (raised.timeout_seconds, raised.timeout_layer) == (3600, "request")
    assert raised.tokens is not None
    assert (raised.tokens.max_tokens, raised.tokens.layer) == (5000, "request")


def test_a_guard_that_is_off_stays_off():
    assert raising.with_raised(Limits(max_turns=5, timeout_seconds=5), {"max_tokens": 9}).tokens is None
