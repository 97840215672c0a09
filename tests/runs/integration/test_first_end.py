"""Whoever ends a run first decides; whoever was told that it will stop finds it stopped."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone
from django_q.models import OrmQ

from runs import queue, services
from runs.errors import Fenced
from runs.event_types import EventType
from runs.lifecycle import claims
from runs.models import Run, Thread
from runs.statuses import RunStatus
from tests.runs.acts import claim, claimed, events, finish, lose_lease, say, status, transcript
from tests.runs.factories import ThreadFactory, started
from tests.runs.invariants import assert_whole

pytestmark = pytest.mark.race
db = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@db
@pytest.mark.parametrize("cancel_first", [True, False])
@pytest.mark.parametrize("wanted", [RunStatus.CANCELLED, RunStatus.INTERRUPTED])
def test_of_cancel_and_timeout_the_first_decides_and_the_other_changes_nothing(wanted: RunStatus, cancel_first: bool):
    run = started()
    held = claimed(run)
    if cancel_first:
        assert services.cancel_run(run_id=run.pk, by="ada", status=wanted)
        finish(held, RunStatus.TIMEOUT)
    else:
        finish(held, RunStatus.TIMEOUT)
        assert not services.cancel_run(run_id=run.pk, by="ada", status=wanted)
    run.refresh_from_db()
    expected = wanted if cancel_first else RunStatus.TIMEOUT
    assert (run.status, run.cancelled_by) == (expected, "ada" if cancel_first else "")
    (ended,) = events(run.thread, EventType.RUN_ENDED)
    assert f'"status":"{expected.value}"' in ended.data.replace(" ", "")
    with pytest.raises(Fenced):
        finish(held, RunStatus.SUCCESS, answer="late")
    run.refresh_from_db()
    assert run.status == expected
    assert "ai: late" not in transcript(run.thread)
    assert_whole([run.thread_id])


@committed
def test_cancels_and_timeouts_at_the_same_moment_leave_one_end_each_time():
    for _round in range(50):
        run = started()
        held = claimed(run)
        gate = threading.Barrier(2)
        accepted: list[bool] = []

        def cancel(run: Run = run, gate: threading.Barrier = gate, accepted: list[bool] = accepted) -> None:
            gate.wait(10)
            accepted.append(services.cancel_run(run_id=run.pk, by="ada"))
            connections.close_all()

        thread = threading.Thread(target=cancel)
        thread.start()
        gate.wait(10)
        finish(held, RunStatus.TIMEOUT)
        thread.join(20)
        expected = RunStatus.CANCELLED if accepted == [True] else RunStatus.TIMEOUT
        assert status(run) == expected
        assert len(events(run.thread, EventType.RUN_ENDED)) == 1


@db
def test_a_lease_that_was_renewed_after_it_was_seen_to_have_lapsed_is_not_taken():
    run = started()
    held = claimed(run)
    lose_lease(run)
    row = OrmQ.objects.get()
    seen_at = timezone.now()
    assert queue.candidates(seen_at)
    assert claims.renew({row.pk: row.lock}, 8)[0] == {row.pk}
    assert not queue.take([row.pk], seen_at, seen_at + timedelta(seconds=8)).payloads
    assert not claim(worker="another").runs
    say(held, "still mine")
    assert status(run) == RunStatus.RUNNING
    assert transcript(run.thread)[-1] == "ai: still mine"


@committed
def test_a_start_that_is_rolled_back_leaves_no_work_behind():
    thread = ThreadFactory()

    class Broken(Exception):
        pass

    with pytest.raises(Broken), transaction.atomic():
        started(thread)
        raise Broken
    assert not Run.objects.exists()
    assert not OrmQ.objects.exists()
    assert not claim().runs
    with transaction.atomic():
        run = started(thread)
    assert [one.run.pk for one in claim().runs] == [run.pk]


@committed
def test_an_end_waits_for_another_processs_transaction_and_is_stored():
    run = started()
    held = claimed(run)
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Thread.objects.select_for_update().filter(pk=run.thread_id).update(title="held")
            locked.set()
            release.wait(20)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    assert locked.wait(10)
    timer = threading.Timer(1.5, release.set)
    timer.start()
    finish(held, answer="done")
    assert release.is_set()
    holder.join(20)
    assert status(run) == RunStatus.SUCCESS
    assert transcript(run.thread)[-1] == "ai: done"
