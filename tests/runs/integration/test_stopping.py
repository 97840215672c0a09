"""Stopping runs, and messages that still wait for their turn."""

from __future__ import annotations

from uuid import uuid4

import orjson
import pytest

from runs import services
from runs.errors import Fenced, RunNotFound, ThreadNotFound
from runs.event_types import Delta, EventType
from runs.lifecycle import Cancel, Progress, commit, commit_one
from runs.models import Event, Run
from runs.statuses import RunStatus, ThreadStatus
from tests.runs.acts import ai, claim, claimed, events, finish, lose_lease, start_child, status, transcript
from tests.runs.invariants import assert_queue_whole, assert_whole

pytestmark = pytest.mark.django_db


# --- cancelling ---------------------------------------------------------------------------------------------------
def test_cancelling_a_run_nobody_executes_ends_it_at_once(thread):
    run = services.start_run(thread=thread, text="hello")
    assert services.cancel_run(run_id=run.pk, by="lin") is True
    run.refresh_from_db()
    assert (run.status, run.cancelled_by, run.error_code) == ("cancelled", "lin", "cancelled")
    thread.refresh_from_db()
    assert thread.status == ThreadStatus.IDLE
    assert_queue_whole()


def test_cancelling_a_running_run_asks_its_worker_and_the_first_wish_counts(thread):
    run = services.start_run(thread=thread, text="hello")
    claimed(run)
    assert services.cancel_run(run_id=run.pk, by="lin") is True
    assert services.cancel_run(run_id=run.pk, by="ann", status=RunStatus.INTERRUPTED) is True
    run.refresh_from_db()
    assert (run.status, run.cancel_requested, run.cancelled_by) == ("running", "cancelled", "lin")


def test_cancelling_a_run_reaches_its_waiting_and_running_children(thread):
    lead = services.start_run(thread=thread, text="hello")
    held = claimed(lead)
    running = start_child(held, "call-1")
    claimed(running)
    waiting = start_child(held, "call-2")
    services.cancel_run(run_id=lead.pk, by="lin")
    running.refresh_from_db()
    assert (running.cancel_requested, running.cancelled_by) == ("cancelled", "parent")
    assert status(waiting) == RunStatus.CANCELLED
    assert status(lead) == RunStatus.RUNNING
    (ended,) = events(thread, EventType.TASK_ENDED)
    assert orjson.loads(ended.data)["task"] == str(waiting.pk)


def test_cancelling_one_child_leaves_its_parent_and_the_others_alone(thread):
    lead = services.start_run(thread=thread, text="hello")
    held = claimed(lead)
    one, other = start_child(held, "call-1"), start_child(held, "call-2")
    assert services.cancel_run(run_id=one.pk, by="lin") is True
    assert (status(one), status(other), status(lead)) == ("cancelled", "pending", "running")
    assert Run.objects.get(pk=lead.pk).cancel_requested == ""


def test_cancelling_what_has_ended_changes_nothing(thread):
    run = services.start_run(thread=thread, text="hello")
    finish(claimed(run), answer="done")
    before = Event.objects.count()
    assert services.cancel_run(run_id=run.pk, by="lin") is False
    assert (status(run), Event.objects.count()) == ("success", before)


def test_cancelling_a_run_that_does_not_exist_is_refused():
    with pytest.raises(RunNotFound):
        services.cancel_run(run_id=uuid4(), by="lin")


def test_a_long_or_unstorable_name_of_who_cancelled_is_no_reason_to_fail(thread):
    run = services.start_run(thread=thread, text="hello")
    assert services.cancel_run(run_id=run.pk, by="\x00" + "x" * 400)


def test_a_cancelled_run_gives_the_turn_to_the_next(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    services.cancel_run(run_id=first.pk, by="lin")
    assert [one.run.pk for one in claim().runs] == [second.pk]


def test_cancelling_the_active_run_and_the_one_behind_it_in_one_commit_leaves_the_thread_idle(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    assert commit([Cancel(run_id=run.pk, lock_threads=(thread.pk,)) for run in (first, second)]) == [True, True]
    assert_whole([thread.pk])
    assert_queue_whole()


# --- messages that wait -------------------------------------------------------------------------------------------
def test_a_message_that_is_taken_back_never_enters_the_transcript(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    third = services.start_run(thread=thread, text="third")
    assert services.remove_queued(run_id=second.pk, by="lin") is True
    finish(claimed(first))
    assert transcript(thread) == ["human: first", "human: third"]
    assert [one.run.pk for one in claim().runs] == [third.pk]


@pytest.mark.parametrize("act", [lambda run: None, claimed, lambda run: finish(claimed(run))])
def test_taking_back_a_message_whose_turn_has_come_does_not_touch_its_run(thread, act):
    run = services.start_run(thread=thread, text="first")
    act(run)
    before = status(run)
    assert services.remove_queued(run_id=run.pk, by="lin") is False
    run.refresh_from_db()
    assert (run.status, run.cancel_requested) == (before, "")


def test_taking_back_what_does_not_exist_is_no_fault():
    assert services.remove_queued(run_id=uuid4(), by="lin") is False
    assert services.send_now(run_id=uuid4(), by="lin") is False


def test_send_now_brings_a_message_before_those_that_wait_longer_and_drops_none(thread):
    running = services.start_run(thread=thread, text="0")
    held = claimed(running)
    services.start_run(thread=thread, text="1")
    services.start_run(thread=thread, text="2")
    third = services.start_run(thread=thread, text="3")
    assert services.send_now(run_id=third.pk, by="lin") is True
    assert Run.objects.get(pk=running.pk).cancel_requested == RunStatus.INTERRUPTED
    finish(held, RunStatus.INTERRUPTED)
    for _ in range(3):
        finish(claim().runs[0].held)
    assert transcript(thread) == ["human: 0", "human: 3", "human: 1", "human: 2"]


def test_send_now_interrupts_a_run_that_no_worker_has_claimed_yet(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    assert services.send_now(run_id=second.pk, by="lin") is True
    assert status(first) == RunStatus.INTERRUPTED
    assert [one.run.pk for one in claim().runs] == [second.pk]


def test_send_now_keeps_finished_children_and_stops_the_others(thread):
    lead = services.start_run(thread=thread, text="first")
    held = claimed(lead)
    done, working = start_child(held, "call-1"), start_child(held, "call-2")
    for one in claim().runs:
        if one.run.pk == done.pk:
            finish(one.held, answer="found")
    waiting = services.start_run(thread=thread, text="second")
    services.send_now(run_id=waiting.pk, by="lin")
    assert status(done) == RunStatus.SUCCESS
    assert Run.objects.get(pk=working.pk).cancel_requested == RunStatus.CANCELLED


def test_send_now_for_a_message_whose_turn_has_come_does_nothing(thread):
    run = services.start_run(thread=thread, text="first")
    claimed(run)
    assert services.send_now(run_id=run.pk, by="lin") is False
    assert Run.objects.get(pk=run.pk).cancel_requested == ""


def test_stop_all_ends_everything_and_nothing_that_waited_is_said(thread):
    lead = services.start_run(thread=thread, text="first")
    held = claimed(lead)
    child = start_child(held)
    for text in ("second", "third"):
        services.start_run(thread=thread, text=text)
    assert len(services.stop_all(thread_id=thread.pk, by="lin")) == 4
    assert status(child) == RunStatus.CANCELLED
    finish(held, RunStatus.CANCELLED)
    assert transcript(thread) == ["human: first"]
    assert_whole([thread.pk, child.thread_id])
    assert len(services.stop_all(thread_id=thread.pk, by="lin")) == 0


def test_stop_all_on_a_thread_that_nobody_executes_leaves_it_idle(thread):
    for text in ("first", "second", "third"):
        services.start_run(thread=thread, text=text)
    services.stop_all(thread_id=thread.pk, by="lin")
    assert transcript(thread) == ["human: first"]
    assert_whole([thread.pk])


def test_stop_all_on_a_thread_that_does_not_exist_is_refused():
    with pytest.raises(ThreadNotFound):
        services.stop_all(thread_id=uuid4(), by="lin")


# --- a run whose worker is gone -----------------------------------------------------------------------------------
def test_cancelling_a_run_whose_worker_let_its_lease_lapse_ends_it_at_once_with_what_it_had_streamed(thread):
    run = services.start_run(thread=thread, text="hello")
    held = claimed(run)
    commit_one(Progress(held=held, entries=[Delta(id="m", text="Half "), Delta(id="m", text="of it")]))
    lose_lease(held)
    assert services.cancel_run(run_id=run.pk, by="lin") is True
    run.refresh_from_db()
    assert (run.status, run.cancelled_by) == ("cancelled", "lin")
    assert transcript(thread)[-1] == "ai: Half of it"
    thread.refresh_from_db()
    assert thread.status == ThreadStatus.IDLE
    assert isinstance(commit([Progress(held=held, entries=[ai("late")])])[0], Fenced)
    assert_whole([thread.pk])
    assert_queue_whole()


def test_its_reply_that_was_begun_anew_is_kept_from_there(thread):
    run = services.start_run(thread=thread, text="hello")
    held = claimed(run)
    pieces = [Delta(id="m", text="Wrong"), Delta(id="m", text="Right ", restarts=True), Delta(id="m", text="so far")]
    commit_one(Progress(held=held, entries=pieces))
    lose_lease(held)
    services.cancel_run(run_id=run.pk, by="lin")
    assert transcript(thread)[-1] == "ai: Right so far"


def test_a_new_message_is_taken_and_executed_right_after(thread):
    run = services.start_run(thread=thread, text="hello")
    lose_lease(claimed(run))
    services.cancel_run(run_id=run.pk, by="lin")
    following = services.start_run(thread=thread, text="again")
    assert [one.run.pk for one in claim().runs] == [following.pk]
