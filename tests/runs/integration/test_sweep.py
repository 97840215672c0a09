"""What a lost machine or a deleted row leaves behind is repaired, whoever looks and however often."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django_q.models import OrmQ

from runs import clock, services
from runs.models import Run, Thread
from runs.statuses import RunStatus
from runs.worker.sweep import sweep
from tests.runs.acts import claim, claimed, finish, start_child, status, stored, transcript
from tests.runs.factories import ThreadFactory, started
from tests.runs.invariants import assert_queue_whole, assert_whole

pytestmark = pytest.mark.django_db


def _rows() -> tuple[object, ...]:
    runs = Run.objects.order_by("pk").values_list("pk", "status", "queue_id", "cancel_requested", "fence")
    return (*runs, *OrmQ.objects.order_by("pk").values_list("pk", "lock"), stored())


def test_healthy_runs_are_left_alone():
    thread = ThreadFactory()
    lead = started(thread)
    held = claimed(lead)
    start_child(held, "call-1")
    claimed(start_child(held, "call-2"))
    started(thread, "waits behind the active one")
    finish(claimed(started()))
    before = _rows()
    sweep()
    assert _rows() == before


def test_children_whose_parent_has_ended_are_stopped():
    lead = started()
    held = claimed(lead)
    running, waiting = start_child(held, "call-1"), None
    claimed(running)
    waiting = start_child(held, "call-2")
    finish(held, RunStatus.ERROR)
    sweep()
    running.refresh_from_db()
    assert (running.status, running.cancel_requested, running.cancelled_by) == ("running", "cancelled", "parent")
    assert status(waiting) == RunStatus.CANCELLED
    before = _rows()
    sweep()
    assert _rows() == before
    assert_whole([lead.thread_id, waiting.thread_id])


@pytest.mark.parametrize("act", [lambda run: None, claimed])
def test_a_run_whose_queue_row_is_gone_is_queued_again_once(act):
    run = started()
    act(run)
    OrmQ.objects.all().delete()
    sweep()
    sweep()
    assert OrmQ.objects.count() == 1
    assert [one.run.pk for one in claim().runs] == [run.pk]
    assert transcript(run.thread) == ["human: Compare three apps"]
    assert_queue_whole()


def test_a_message_whose_turn_was_never_called_gets_it():
    thread = ThreadFactory()
    first, second, third = (started(thread, text) for text in ("first", "second", "third"))
    OrmQ.objects.filter(pk=first.queue_id).delete()
    Run.objects.filter(pk=first.pk).delete()  # its row vanished without an end
    sweep()
    sweep()
    assert transcript(thread)[-1] == "human: second"
    assert [one.run.pk for one in claim().runs] == [second.pk]
    assert Run.objects.get(pk=third.pk).queue_id is None


def test_of_messages_that_came_in_one_commit_only_the_first_gets_the_turn():
    thread = ThreadFactory()
    first = started(thread, "first")
    texts = ("second", "third")
    second, third = services.commit(
        [
            services.start_verb(thread_id=thread.pk, owner_id=thread.owner_id, messages=[services.user_message(text)])
            for text in texts
        ]
    )
    assert second.created_at == third.created_at
    OrmQ.objects.filter(pk=first.queue_id).delete()
    Run.objects.filter(pk=first.pk).delete()
    sweep()
    assert OrmQ.objects.count() == 1
    assert transcript(thread)[-1] == "human: second"


def test_an_empty_database_needs_no_repair():
    sweep()
    assert not Thread.objects.exists()


def test_a_run_that_says_running_without_a_queue_row_is_continued_as_after_a_lost_worker():
    run = started()
    claimed(run)
    OrmQ.objects.all().delete()
    Run.objects.filter(pk=run.pk).update(queue_id=None)
    sweep()
    (again,) = claim(worker="w2").runs
    assert (again.run.pk, again.run.attempt, again.run.lost_workers) == (run.pk, 2, 1)
    assert_whole([run.thread_id])
    assert_queue_whole()


def test_after_the_clock_was_set_back_what_waits_is_taken_again(settings):
    """On SQLite the machine's clock is the database's; a queue row from the future must not wait for it."""
    started()
    OrmQ.objects.update(lock=clock.now() + timedelta(hours=1))
    assert not claim().runs
    sweep()
    assert OrmQ.objects.get().lock <= clock.now() + timedelta(seconds=2 * settings.LEASE_SECONDS)


def test_a_lease_of_ordinary_length_is_left_alone():
    claimed(started())
    lock = OrmQ.objects.get().lock
    sweep()
    assert OrmQ.objects.get().lock == lock
