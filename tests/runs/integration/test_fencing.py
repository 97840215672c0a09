"""Every write of a worker is gated by the lease it claimed the run with; whoever lost it can write nothing."""

from __future__ import annotations

import orjson
import pytest
from django.db import connection
from django_q.models import OrmQ, Task

from runs.errors import Fenced, IllegalMove
from runs.event_types import EventType
from runs.ledger import Ledger
from runs.lifecycle import Ending, Finish, HandOver, Held, Progress, commit, commit_one, waiting
from runs.models import Run, Thread
from runs.statuses import RunStatus, WaitingFor
from tests.runs.acts import (
    ai,
    child_verb,
    claimed,
    delta,
    events,
    finish,
    lose_lease,
    say,
    start_child,
    status,
    stored,
    transcript,
)
from tests.runs.factories import started
from tests.runs.invariants import assert_queue_whole, assert_whole

pytestmark = pytest.mark.django_db


def _zombie(run: Run) -> tuple[Held, Held]:
    """The lease a worker lost, and the one another got after it."""
    old = claimed(run, worker="w1")
    lose_lease(run)
    return old, claimed(run, worker="w2")


VERBS = {
    "progress": lambda held: Progress(held=held, entries=[ai("late"), delta()], changes={"model_calls": 9}),
    "waiting": lambda held: waiting(held, WaitingFor.CHILDREN),
    "finish": lambda held: Finish(held=held, ending=Ending(status=RunStatus.SUCCESS), entries=[ai("late")]),
    "child": child_verb,
    "hand over": lambda held: HandOver(held=held),
}


@pytest.mark.parametrize("name", VERBS)
def test_a_worker_that_lost_its_lease_can_write_nothing(name):
    run = started()
    old, new = _zombie(run)
    before = stored()
    with pytest.raises(Fenced):
        commit_one(VERBS[name](old))
    assert stored() == before
    assert not Run.objects.filter(parent=run).exists()
    run.refresh_from_db()
    assert (run.status, run.fence, run.model_calls, run.waiting_for) == ("running", new.fence, 0, "")


@pytest.mark.parametrize("name", VERBS)
def test_nobody_can_write_to_a_run_that_has_ended(name):
    run = started()
    held = claimed(run)
    finish(held)
    before = stored()
    with pytest.raises(Fenced):
        commit_one(VERBS[name](held))
    assert stored() == before


@pytest.mark.parametrize("name", VERBS)
def test_nobody_can_write_to_a_run_that_was_handed_over(name):
    held = claimed(started())
    commit_one(HandOver(held=held))
    before = stored()
    with pytest.raises(Fenced):
        commit_one(VERBS[name](held))
    assert stored() == before


@pytest.mark.parametrize("name", VERBS)
def test_a_refused_write_leaves_its_neighbours_in_the_commit_unharmed(name):
    run = started()
    old, new = _zombie(run)
    neighbour = started()
    beside = claimed(neighbour)
    first, refused, last = commit(
        [Progress(held=beside, entries=[ai("one")]), VERBS[name](old), Progress(held=new, entries=[ai("two")])]
    )
    assert (first, last) == (False, False)  # nothing waits to be picked up
    assert isinstance(refused, Fenced)
    assert transcript(neighbour.thread)[-1] == "ai: one"
    assert transcript(run.thread)[-1] == "ai: two"
    assert_whole([run.thread_id, neighbour.thread_id])


def test_the_first_end_wins_and_the_second_is_refused():
    run = started()
    held = claimed(run)
    ends = [Finish(held=held, ending=Ending(status=status)) for status in (RunStatus.TIMEOUT, RunStatus.SUCCESS)]
    first, second = commit(ends)
    assert (first.pk, status(run)) == (run.pk, "timeout")
    assert isinstance(second, Fenced)
    assert len(events(run.thread, EventType.RUN_ENDED)) == 1


def test_a_run_that_was_changed_between_reading_and_writing_back_is_not_overwritten():
    """As on a database without row locks: whoever writes second finds another fence and writes nothing."""
    run = started()
    held = claimed(run)
    with pytest.raises(Fenced), Ledger(thread_ids=[run.thread_id], run_ids=[run.pk]) as ledger:
        Progress(held=held, entries=[ai("mine")], changes={"model_calls": 5}).apply(ledger)
        Run.objects.filter(pk=run.pk).update(fence=held.fence + 1)
    connection.set_rollback(False)  # the test's own transaction goes on
    assert Run.objects.get(pk=run.pk).model_calls == 0


def test_progress_may_change_neither_status_nor_fence():
    held = claimed(started())
    for changes in ({"status": "success"}, {"fence": 1}):
        with pytest.raises(IllegalMove):
            commit_one(Progress(held=held, changes=changes))
    assert status(held) == RunStatus.RUNNING


# --- children -----------------------------------------------------------------------------------------------------
def test_a_call_starts_its_child_once():
    lead = started()
    held = claimed(lead)
    child, now = commit_one(child_verb(held, "call-1"))
    again, once_more = commit_one(child_verb(held, "call-1", prompt="something else"))
    assert (child.pk, now, once_more) == (again.pk, True, False)
    assert Thread.objects.filter(parent_run=lead).count() == 1
    assert len(events(lead.thread, EventType.TASK_CREATED)) == 1


def test_a_call_finds_its_child_again_after_its_worker_was_lost():
    run = started()
    old = claimed(run)
    child = start_child(old)
    lose_lease(run)
    new = claimed(run)
    assert start_child(new).pk == child.pk


def test_a_child_has_a_thread_of_its_own_that_begins_with_its_prompt():
    lead = started()
    child = start_child(claimed(lead), prompt="Find \x00three", title="t\ud800itle")
    child.refresh_from_db()
    assert transcript(child.thread) == ["human: Find \ufffdthree"]
    assert (child.thread.owner, child.depth, child.root_id) == (lead.thread.owner, 1, lead.pk)
    assert (child.title, child.thread.title) == ("t\ufffditle", "t\ufffditle")
    (card,) = events(lead.thread, EventType.TASK_CREATED)
    assert orjson.loads(card.data)["thread"] == str(child.thread_id)


def test_a_childs_end_is_told_on_both_threads_with_the_same_facts():
    lead = started()
    held = claimed(lead)
    child = start_child(held)
    finish(claimed(child), answer="Three sources")
    (ended,) = events(child.thread, EventType.RUN_ENDED)
    (told,) = events(lead.thread, EventType.TASK_ENDED)
    card, own = orjson.loads(told.data), orjson.loads(ended.data)
    assert card["result"] == "Three sources"
    assert {key: card[key] for key in own} == own


# --- ends ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("ending", "thread_status"),
    [("success", "idle"), ("cancelled", "idle"), ("interrupted", "idle"), ("error", "error"), ("timeout", "error")],
)
def test_the_thread_shows_how_its_last_run_ended(ending, thread_status):
    run = started()
    finish(claimed(run), RunStatus(ending))
    run.thread.refresh_from_db()
    assert run.thread.status == thread_status
    assert Task.objects.get(pk=run.pk.hex).success is (ending == "success")
    assert_queue_whole()


def test_an_end_with_words_no_database_takes_is_stored():
    run = started()
    ending = Ending(status=RunStatus.ERROR, error_code="internal", error="bad \x00 \ud800", result="\udfff")
    commit_one(Finish(held=claimed(run), ending=ending))
    run.refresh_from_db()
    assert run.error == "bad \ufffd \ufffd"


def test_numbers_and_keys_that_json_readers_differ_about_are_stored():
    run = started()
    odd = {"number": 10**40, 5: "five", "not a number": float("nan")}
    held = claimed(run)
    commit_one(Progress(held=held, entries=[{**ai("x"), "tool_calls": [{"id": "c", "name": "t", "args": odd}]}]))
    ending = Ending(status=RunStatus.ERROR, detail={"limit": 10**40})
    commit_one(Finish(held=held, ending=ending))
    assert str(10**40) in events(run.thread, EventType.RUN_ENDED)[0].data
    assert len(transcript(run.thread)) == 2


def test_the_payload_stands_before_the_end():
    run = started()
    finish(claimed(run), answer="done")
    assert [event.type for event in events(run.thread)][-2:] == ["message", "run.ended"]


def test_a_run_that_is_handed_over_is_continued_by_the_next_worker_and_counts_no_attempt():
    run = started()
    held = claimed(run, worker="w1")
    say(held, "so far")
    queue_id = commit_one(HandOver(held=held))
    assert status(run) == RunStatus.PENDING
    lose_lease(run)
    new = claimed(run, worker="w2", max_attempts=1)
    assert new.fence != held.fence
    assert OrmQ.objects.filter(pk=queue_id).exists()
    finish(new)
    assert_whole([run.thread_id])
