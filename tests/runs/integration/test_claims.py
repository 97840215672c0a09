"""Who gets what from the queue, and what becomes of runs whose workers are lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.utils import timezone
from django_q.models import OrmQ
from django_q.signing import SignedPackage
from hypothesis import given
from hypothesis import strategies as st

from runs import queue, services
from runs.event_types import EventType
from runs.lifecycle import HandOver, Held, Progress, claims, commit_one
from runs.models import Run
from runs.queue import Candidate, fair_share, pick
from runs.transcript import load
from tests.runs.acts import ai, claim, claimed, events, finish, lose_lease, say, start_child, status
from tests.runs.factories import PersonFactory, RunFactory, ThreadFactory, started
from tests.runs.invariants import assert_queue_whole, assert_whole

db = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


# --- whom to serve ------------------------------------------------------------------------------------------------
@st.composite
def _waiting(draw: Any) -> list[Candidate]:
    lanes = draw(st.lists(st.tuples(st.sampled_from([None, 1, 2, 3]), st.integers(0, 1)), max_size=30))
    return [Candidate(number, None, owner, depth) for number, (owner, depth) in enumerate(lanes, start=1)]


@given(rows=_waiting(), count=st.integers(0, 40))
def test_children_come_before_leads_and_owners_take_turns(rows, count):
    chosen = pick(rows, count)
    assert len(chosen) == min(count, len(rows)) == len(set(chosen))
    assert [row.depth > 0 for row in chosen] == sorted((row.depth > 0 for row in chosen), reverse=True)
    for left in set(rows) - set(chosen):
        lane = [row for row in chosen if (row.depth, row.owner_id) == (left.depth, left.owner_id)]
        assert all(row.queue_id < left.queue_id for row in lane)  # each owner's oldest first
        for owner in {row.owner_id for row in chosen if row.depth == left.depth}:
            others = sum(row.owner_id == owner and row.depth == left.depth for row in chosen)
            assert others <= len(lane) + 1  # nobody got two before this owner got the next


@given(
    waiting=st.integers(0, 1000),
    workers=st.integers(0, 9),
    free=st.integers(-2, 200),
    most=st.integers(1, 32),
)
def test_a_worker_takes_its_share_and_no_more_than_it_has_room_for(waiting, workers, free, most):
    share = fair_share(waiting, workers=workers, free=free, most=most)
    assert 0 <= share <= max(0, min(waiting, free, most))
    if free > 0 and waiting:
        assert share >= 1  # work never lies while a worker is free
    if free >= most >= waiting:
        assert share * max(1, workers) >= waiting  # all workers together take everything


@db
def test_a_claim_takes_a_fair_share():
    for _ in range(9):
        started()
    assert len(claim(workers=3).runs) == 3
    assert len(claim(workers=3).runs) == 2
    assert len(claim(workers=1, free=2).runs) == 2


@db
def test_one_persons_long_queue_neither_hides_other_people_nor_children():
    crowd = PersonFactory()
    held = claimed(started())
    for _ in range(12):
        started(ThreadFactory(owner=crowd))
    lonely, child = started(), start_child(held)
    rows = queue.candidates(timezone.now(), window=4)
    assert len(rows) == 4
    assert [row.run_id for row in pick(rows, 3)][::2] == [child.pk, lonely.pk]


@db
def test_a_window_that_is_wide_enough_gives_the_oldest_first():
    runs = [started() for _ in range(3)]
    assert [row.run_id for row in queue.candidates(timezone.now())] == [run.pk for run in runs]


# --- claiming -----------------------------------------------------------------------------------------------------
@db
def test_a_claimed_run_is_leased_and_carries_its_transcript():
    run = started(text="hello")
    (one,) = claim(worker="w7").runs
    assert [message["content"] for message in one.transcript] == ["hello"]
    run.refresh_from_db()
    assert (run.status, run.attempt, run.worker, run.fence) == ("running", 1, "w7", one.held.fence)
    assert OrmQ.objects.get(pk=one.queue_id).lock > timezone.now()
    assert not claim().runs


@db
def test_a_lost_run_is_claimed_again_from_its_transcript_with_one_more_attempt():
    run = started(text="hello")
    say(claimed(run), "so far")
    lose_lease(run)
    (one,) = claim(worker="w2").runs
    assert [message["content"] for message in one.transcript] == ["hello", "so far"]
    attempts = [orjson.loads(event.data)["attempt"] for event in events(run.thread, EventType.RUN_STARTED)]
    assert attempts == [1, 2]


@db
def test_a_hand_over_is_a_further_attempt_but_no_lost_worker():
    run = started()
    for _ in range(4):
        held = claimed(run, max_attempts=1)
        commit_one(HandOver(held=held))
        lose_lease(run)  # the lease is given back
    run.refresh_from_db()
    assert (run.status, run.attempt, run.lost_workers) == ("pending", 4, 0)
    claimed(run, max_attempts=1)


@db
def test_a_run_that_ends_without_a_worker_leaves_no_call_unanswered():
    given_up, cancelled = started(), started()
    call = {"id": "c1", "name": "write_file", "args": {"path": "a"}}
    for run in (given_up, cancelled):
        commit_one(Progress(held=claimed(run, most=1, free=1), entries=[{**ai(""), "tool_calls": [call]}]))
    lose_lease(given_up)
    assert not claim(max_attempts=1).runs
    commit_one(HandOver(held=_held(cancelled)))
    services.cancel_run(run_id=cancelled.pk, by="lin")
    for run in (given_up, cancelled):
        last = load([run.thread_id])[run.thread_id][-1]
        assert (last["type"], last["tool_call_id"], last["status"]) == ("tool", "c1", "error")


def _held(run):
    run.refresh_from_db()
    return Held(run.pk, run.thread_id, run.fence)


@db
def test_the_time_of_the_first_execution_stays():
    run = started()
    claimed(run)
    run.refresh_from_db()
    first = run.started_at
    lose_lease(run)
    claimed(run)
    run.refresh_from_db()
    assert run.started_at == first


@db
def test_a_run_that_lost_its_worker_too_often_ends_once_and_its_parent_is_told_once():
    lead = started()
    held = claimed(lead)
    child = start_child(held)
    for _ in range(2):
        claimed(child, max_attempts=2)
        lose_lease(child)
    assert not claim(max_attempts=2).runs
    assert not claim(max_attempts=2).runs
    child.refresh_from_db()
    assert (child.status, child.error_code, child.stop_detail["limit"]) == ("error", "worker_lost", 2)
    (told,) = events(lead.thread, EventType.TASK_ENDED)
    assert orjson.loads(told.data)["error_code"] == "worker_lost"
    assert len(events(child.thread, EventType.RUN_ENDED)) == 1
    assert_queue_whole()


@db
def test_the_end_of_a_lost_run_gives_the_turn_to_the_message_behind_it():
    thread = ThreadFactory()
    first, second = started(thread, "first"), started(thread, "second")
    claimed(first, max_attempts=1)
    lose_lease(first)
    assert claim(max_attempts=1).runs == []
    assert [one.run.pk for one in claim(max_attempts=1).runs] == [second.pk]
    assert_whole([thread.pk])


@db
def test_a_run_that_was_cancelled_while_its_last_worker_was_lost_ends_as_cancelled():
    run = started()
    claimed(run, max_attempts=1)
    services.cancel_run(run_id=run.pk, by="lin")
    lose_lease(run)
    assert claim(max_attempts=1).runs == []
    run.refresh_from_db()
    assert (run.status, run.error_code, run.cancelled_by) == ("cancelled", "cancelled", "lin")


@db
def test_cancel_requests_name_running_runs_only():
    run, pending = started(), started()
    claimed(run, most=1)
    for each in (run, pending):
        services.cancel_run(run_id=each.pk, by="lin")
    assert claims.cancel_requests() == [(run.pk, "cancelled", "lin")]


@db
def test_renewing_keeps_only_what_is_still_ours():
    mine, lost = started(), started()
    before = claim()
    held = {one.queue_id: before.lock for one in before.runs}
    lose_lease(lost)
    claim(worker="w2")
    kept, lock = claims.renew(held, 8)
    mine.refresh_from_db()
    assert kept == {mine.queue_id}
    assert claims.renew({mine.queue_id: before.lock}, 8)[0] == set()  # the value as it was stored before
    assert claims.renew({mine.queue_id: lock}, 8)[0] == {mine.queue_id}


@db
def test_renewing_nothing_is_no_fault():
    assert claims.renew({}, 8)[0] == set()


@committed
def test_a_row_the_database_refuses_does_not_block_its_neighbours():
    busy = started()
    claimed(busy)
    second = RunFactory(thread=busy.thread)  # a second run that may be claimed on a thread where one runs
    Run.objects.filter(pk=second.pk).update(queue_id=queue.add({second.pk: timezone.now()})[second.pk])
    neighbours = [started(), started()]
    drawn = claim()
    assert {one.run.pk for one in drawn.runs} == {run.pk for run in neighbours}
    assert drawn.lock is not None
    assert (status(second), status(busy)) == ("pending", "running")
    assert not claim().runs  # it is not tried again at once


# --- rows that are not runs ---------------------------------------------------------------------------------------
def _row(payload: str, key: str = "runs") -> OrmQ:
    return OrmQ.objects.create(key=key, payload=payload, lock=timezone.now() - timedelta(seconds=1))


@db
def test_a_plain_task_is_handed_out_once_under_a_lease():
    task = {"id": "a", "name": "n", "func": "math.sqrt", "args": (4,), "kwargs": {}}
    row = _row(SignedPackage.dumps(task))
    drawn = claim()
    assert drawn.tasks == [(row.pk, task)]
    assert claims.renew({row.pk: drawn.lock}, 8)[0] == {row.pk}
    assert not claim().tasks


class _Vanishing:
    """Unpickling needs this class; another version of the code does not have it."""


@db
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(lambda: "not signed at all", id="unsigned"),
        pytest.param(lambda: "", id="empty"),
        pytest.param(lambda: SignedPackage.dumps({"func": "math.sqrt"})[:-3] + "abc", id="forged"),
        pytest.param(lambda: SignedPackage.dumps(["no", "task"]), id="no task"),
        pytest.param(lambda: SignedPackage.dumps({"id": 1}), id="no function"),
        pytest.param(lambda: queue.package(uuid4()), id="a run that is gone"),
    ],
)
def test_a_row_nobody_here_can_execute_is_removed(payload):
    row = _row(payload())
    run = started()
    assert [one.run.pk for one in claim().runs] == [run.pk]
    assert not OrmQ.objects.filter(pk=row.pk).exists()


@db
def test_a_signed_row_of_another_version_is_removed_instead_of_ending_every_worker(monkeypatch):
    payload = SignedPackage.dumps({"func": "math.sqrt", "args": (_Vanishing(),)})
    monkeypatch.delattr(f"{__name__}._Vanishing")
    row = _row(payload)
    run = started()
    assert [one.run.pk for one in claim().runs] == [run.pk]
    assert not OrmQ.objects.filter(pk=row.pk).exists()


@db
def test_rows_of_another_cluster_are_left_alone():
    row = _row("whatever", key="another")
    assert claim() == claims.Claims()
    assert OrmQ.objects.filter(pk=row.pk).exists()


@db
def test_a_second_delivery_of_a_run_that_has_ended_does_nothing():
    run = started()
    finish(claimed(run))
    row = _row(queue.package(run.pk))
    assert not claim().runs
    assert (status(run), OrmQ.objects.filter(pk=row.pk).exists()) == ("success", False)


@pytest.mark.django_db
def test_with_one_free_place_at_a_time_people_are_still_served_in_turn():
    ada, bob = PersonFactory(), PersonFactory()
    of_ada = [services.start_run(thread=ThreadFactory(owner=ada), text="hello") for _ in range(9)]
    of_bob = services.start_run(thread=ThreadFactory(owner=bob), text="hello")
    served = [one.run.pk for _ in range(4) for one in claim(free=1).runs]
    assert served == [of_ada[0].pk, of_bob.pk, of_ada[1].pk, of_ada[2].pk]
