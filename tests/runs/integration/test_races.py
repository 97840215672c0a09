"""Several processes at the same moment: one gets it, nobody waits for ever, nothing is doubled."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone
from django_q.models import OrmQ

from runs import queue, services
from runs.errors import Fenced
from runs.ledger import Ledger
from runs.lifecycle import Progress, claims, commit
from runs.models import Run, Thread
from runs.statuses import RunStatus
from tests.runs.acts import ai, claim, claimed, finish, say, start_child, transcript
from tests.runs.factories import PersonFactory, ThreadFactory, started
from tests.runs.invariants import assert_whole

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.race
db = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


def _together(*jobs: Callable[[], Any]) -> list[Any]:
    """Run jobs in threads that begin together; each with a connection of its own."""
    gate = threading.Barrier(len(jobs))
    results: list[Any] = [None] * len(jobs)

    def work(place: int, job: Callable[[], Any]) -> None:
        try:
            gate.wait(10)
            results[place] = job()
        except BaseException as fault:  # noqa: BLE001 - looked at by the test
            results[place] = fault
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=(place, job)) for place, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


@committed
def test_workers_that_claim_at_the_same_time_never_get_the_same_run():
    runs = {started().pk for _ in range(12)}
    taken: list[Any] = []
    while Run.objects.filter(status=RunStatus.PENDING).exists():
        results = _together(*(lambda name=f"w{n}": claim(worker=name, most=3) for n in range(3)))
        assert all(isinstance(result, claims.Claims) for result in results), results
        taken += [one.run.pk for result in results for one in result.runs]
    assert len(taken) == len(set(taken)) == 12
    assert set(taken) == runs
    assert set(Run.objects.values_list("attempt", flat=True)) == {1}
    assert_whole(Thread.objects.values_list("pk", flat=True))


@committed
def test_two_requests_to_start_at_the_same_time_give_one_run_and_one_refusal():
    thread = ThreadFactory()

    def start() -> Any:
        return services.start_run(thread=thread, text="hello", multitask=services.MultitaskStrategy.REJECT)

    for _ in range(3):
        results = _together(start, start)
        assert sorted(type(result).__name__ for result in results) == ["Run", "ThreadBusy"]
        services.stop_all(thread_id=thread.pk, by="lin")


@committed
def test_one_call_that_two_processes_dispatch_at_once_starts_one_child():
    lead = started()
    held = claimed(lead)
    first, second = _together(lambda: start_child(held), lambda: start_child(held))
    assert first.pk == second.pk
    assert Run.objects.filter(parent=lead).count() == 1
    assert_whole([lead.thread_id, first.thread_id])


@committed
def test_many_messages_at_once_are_numbered_without_a_gap_and_one_is_active():
    thread = ThreadFactory()
    results = _together(*(lambda n=n: services.start_run(thread=thread, text=f"m{n}") for n in range(6)))
    assert all(isinstance(result, Run) for result in results), results
    assert_whole([thread.pk])
    assert len(transcript(thread)) == 1


@committed
def test_a_thread_that_is_deleted_while_its_worker_writes_goes_without_a_trace():
    run = started()
    held = claimed(run)

    def write() -> int:
        for count in itertools.count():
            try:
                say(held, "more")
            except Fenced:  # the thread is gone
                return count
        raise AssertionError("unreachable")

    def delete() -> None:
        services.delete_thread(thread_id=run.thread_id, by="lin")

    written, deleted = _together(write, delete)
    assert deleted is None
    assert written >= 0
    assert not Thread.objects.exists()
    assert not OrmQ.objects.exists()


@pytest.mark.postgres
@committed
def test_a_cancel_that_meets_a_claim_waits_for_it_instead_of_a_deadlock():
    run = started()
    took, go_on = threading.Event(), threading.Event()

    def take_and_start() -> None:
        now = timezone.now()
        with transaction.atomic():
            queue.take([run.queue_id], now, now + timedelta(seconds=8))
            took.set()
            go_on.wait(10)
            with Ledger(thread_ids=[run.thread_id], run_ids=[run.pk], whole_runs=True) as ledger:
                ledger.change(ledger.runs[run.pk], status="running", fence=7, attempt=1)

    def cancel() -> bool:
        took.wait(10)
        return services.cancel_run(run_id=run.pk, by="lin")

    def let_go_on() -> None:
        took.wait(10)
        _until_somebody_waits_for_a_lock()
        go_on.set()

    claimer, cancelled, _gate = _together(take_and_start, cancel, let_go_on)
    assert (claimer, cancelled) == (None, True)
    run.refresh_from_db()
    assert (run.status, run.cancel_requested) == ("running", "cancelled")


@pytest.mark.postgres
@committed
def test_a_commit_that_the_database_gives_up_because_of_a_deadlock_is_done_again():
    """Two processes of ours lock in one order; another program may not, and whoever the database picks goes on."""
    one, two = sorted((claimed(started(), most=1) for _ in range(2)), key=lambda held: held.thread_id)
    holds, go_on = threading.Event(), threading.Event()

    def another_program() -> Any:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '60s'")  # the commit is the one to be given up
            Thread.objects.select_for_update().get(pk=two.thread_id)
            holds.set()
            go_on.wait(10)
            Thread.objects.select_for_update().get(pk=one.thread_id)

    def commit_both() -> Any:
        holds.wait(10)
        verbs = [Progress(held=held, entries=[ai("once")]) for held in (one, two)]
        with connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '50ms'")
        return commit(verbs)

    def let_go_on() -> None:
        holds.wait(10)
        _until_somebody_waits_for_a_lock()
        go_on.set()

    other, outcome, _gate = _together(another_program, commit_both, let_go_on)
    assert not isinstance(other, OperationalError)
    assert outcome == [False, False]  # nothing waits to be picked up
    assert_whole([one.thread_id, two.thread_id])


@pytest.mark.postgres
@committed
def test_a_deletion_that_meets_an_end_is_done_again_after_it():
    """An end holds the thread and takes the queue row last; a deletion takes the queue row first."""
    run = started()
    claimed(run)
    holds, go_on = threading.Event(), threading.Event()

    def end_the_run() -> Any:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '60s'")  # the deletion is the one to be given up
            Thread.objects.select_for_update(no_key=True).get(pk=run.thread_id)
            holds.set()
            go_on.wait(10)
            queue.drop([run.queue_id])

    def delete() -> Any:
        holds.wait(10)
        with connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '50ms'")
        # Without its first half, which asks the run to stop and would wait for the same locks.
        return services.again_after_deadlock(lambda: services._delete_tree(run.thread_id))

    def let_go_on() -> None:
        holds.wait(10)
        _until_somebody_waits_for_a_lock()
        go_on.set()

    ended, deleted, _gate = _together(end_the_run, delete, let_go_on)
    assert (ended, deleted) == (None, None)
    assert not Thread.objects.filter(pk=run.thread_id).exists()
    assert not OrmQ.objects.exists()


def _until_somebody_waits_for_a_lock() -> None:
    with connection.cursor() as cursor:
        for _ in range(2000):
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.fetchone()[0]:
                return
    raise AssertionError("nobody waits for a lock")


@committed
def test_workers_that_claim_and_finish_two_hundred_runs_at_once_meet_no_error():
    runs = [started() for _ in range(200)]

    def work(name: str) -> int:
        finished = 0
        while Run.objects.filter(status=RunStatus.PENDING).exists():
            for one in claim(worker=name, most=5).runs:
                say(one.held, "working")
                finish(one.held, answer="done")
                finished += 1
        return finished

    counts = _together(*(lambda name=f"w{n}": work(name) for n in range(8)))
    assert all(isinstance(count, int) for count in counts), counts
    assert sum(counts) == 200
    assert Run.objects.filter(status=RunStatus.SUCCESS, attempt=1).count() == 200
    assert not OrmQ.objects.exists()
    assert_whole([run.thread_id for run in runs[:20]])


@committed
def test_starts_of_one_person_on_many_threads_at_the_same_moment_never_exceed_what_may_wait():
    owner = PersonFactory()
    for most in (1, 3, 5):
        threads = [ThreadFactory(owner=owner) for _ in range(8)]
        starts = [
            replace(
                services.start_verb(
                    thread_id=thread.pk,
                    owner_id=owner.pk,
                    messages=[services.user_message("hello")],
                    agent="lead_agent",
                ),
                most_pending=most,
            )
            for thread in threads
        ]
        results = _together(*(lambda start=start: commit([start])[0] for start in starts))
        names = [type(result).__name__ for result in results]
        assert sorted(names) == ["Run"] * most + ["TooManyPending"] * (8 - most)
        for thread in threads:
            services.stop_all(thread_id=thread.pk, by="lin")
