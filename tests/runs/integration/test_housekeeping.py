"""What is not kept for ever goes by itself; what a person may still want to read never does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import Schedule, Task

from deerflow_site.models import SetupLink
from runs import log, queue, services
from runs.event_types import EventType, TaskStep
from runs.housekeeping import DAILY, housekeep
from runs.lifecycle import Progress, commit_one
from runs.models import Event, Message, Run, Thread, WorkerHeartbeat
from runs.statuses import ThreadStatus
from tests.runs.acts import ai, claimed, delta, events, finish, start_child, transcript
from tests.runs.factories import ThreadFactory

pytestmark = pytest.mark.django_db
KEPT = {kind for kind in EventType if kind not in {EventType.DELTA, EventType.TASK_STEP}}


def conversation() -> Thread:
    """A lead with a child; both have streamed, stepped and ended."""
    thread: Thread = ThreadFactory()  # type: ignore[assignment]
    lead = claimed(services.start_run(thread=thread, text="hello"))
    child_run = start_child(lead)
    child = claimed(child_run)
    step = TaskStep(task=str(child_run.pk), turn=1, kind="text", text="looking")
    commit_one(Progress(held=child, entries=[delta(), ai("looking")], parent_entries=[step]))
    finish(child, answer="found")
    commit_one(Progress(held=lead, entries=[delta()]))
    finish(lead, answer="done")
    return thread


def age(thread: Thread, days: int) -> None:
    past = timezone.now() - timedelta(days=days)
    Run.objects.filter(thread__in=threads_of(thread)).update(ended_at=past)
    Task.objects.update(stopped=past)


def threads_of(thread: Thread) -> list[Thread]:
    return [thread, *Thread.objects.filter(parent_run__thread=thread)]


def kinds(thread: Thread) -> set[str]:
    return set(Event.objects.filter(thread__in=threads_of(thread)).values_list("type", flat=True))


def test_deltas_and_steps_of_old_runs_go_and_everything_else_stays():
    old = conversation()
    age(old, 31)
    before = transcript(old)
    assert housekeep()["deltas_and_steps"] == 3
    assert kinds(old) <= KEPT
    assert {EventType.RUN_ENDED, EventType.TASK_CREATED, EventType.TASK_ENDED} <= kinds(old)
    assert transcript(old) == before
    assert Message.objects.count() > 0


def test_runs_younger_than_that_keep_theirs():
    young = conversation()
    age(young, 29)
    assert housekeep()["deltas_and_steps"] == 0
    assert {EventType.DELTA, EventType.TASK_STEP} <= kinds(young)


def test_a_run_that_has_not_ended_keeps_them_however_old_it_is():
    thread = ThreadFactory()
    lead = claimed(services.start_run(thread=thread, text="hello"))
    commit_one(Progress(held=lead, entries=[delta()]))
    Run.objects.update(created_at=timezone.now() - timedelta(days=400))
    assert housekeep()["deltas_and_steps"] == 0
    assert len(events(thread, EventType.DELTA)) == 1


def test_a_pruned_log_is_still_read_from_any_cursor():
    thread = conversation()
    age(thread, 31)
    housekeep()
    rows = log.read(thread.pk, 0)
    assert [row.seq for row in rows] == sorted(row.seq for row in rows)
    assert rows[-1].seq == Thread.objects.get(pk=thread.pk).last_seq
    assert log.read(thread.pk, rows[2].seq) == rows[3:]


def test_the_second_time_there_is_nothing_left_to_do():
    age(conversation(), 31)
    housekeep()
    assert set(housekeep().values()) == {0}


def test_a_dry_run_counts_the_same_and_removes_nothing():
    age(conversation(), 31)
    WorkerHeartbeat.objects.create(
        name="gone", slots=1, started_at=timezone.now(), seen_at=timezone.now() - timedelta(days=2)
    )
    SetupLink.objects.create(digest="x" * 64, expires_at=timezone.now() - timedelta(hours=1))
    stored = Event.objects.count()
    counted = housekeep(dry_run=True)
    assert Event.objects.count() == stored
    assert counted["deltas_and_steps"] == 3 and counted["queue_results"] == 2
    assert counted["heartbeats"] == counted["setup_links"] == 1
    assert housekeep() == counted


def test_results_of_the_queue_go_but_failures_of_other_tasks_stay():
    past = timezone.now() - timedelta(days=31)
    for name, func, success in (("a", "x.ok", True), ("b", "x.failed", False), ("c", queue.RUN_FUNCTION, False)):
        Task.objects.create(id=name, name=name, func=func, started=past, stopped=past, success=success)
    housekeep()
    assert set(Task.objects.values_list("name", flat=True)) == {"b"}


def test_a_thread_that_says_busy_without_a_reason_is_settled():
    stuck, busy = ThreadFactory(status=ThreadStatus.BUSY), ThreadFactory()
    services.start_run(thread=busy, text="hello")
    assert housekeep()["busy_threads_settled"] == 1
    stuck.refresh_from_db()
    busy.refresh_from_db()
    assert (stuck.status, busy.status) == (ThreadStatus.IDLE, ThreadStatus.BUSY)


def test_it_is_scheduled_once_however_often_workers_start():
    for _ in range(3):
        queue.schedule_daily(DAILY, "housekeeping")
    schedule = Schedule.objects.get()
    assert (schedule.func, schedule.schedule_type, schedule.repeats) == (DAILY, Schedule.DAILY, -1)
