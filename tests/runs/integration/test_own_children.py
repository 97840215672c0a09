"""A child that begins in its parent's process: running from its first moment, under a fence and a lease of its own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from runs.errors import Fenced
from runs.lifecycle import Held, Progress, claims, commit
from runs.models import Run
from tests.runs.acts import ai, child_verb, claim, claimed, events, finish, lose_lease, start_child, status, transcript
from tests.runs.factories import started
from tests.runs.invariants import assert_whole

pytestmark = pytest.mark.django_db


@pytest.fixture
def parent() -> Held:
    return claimed(started())


def own_child(parent: Held, call_id: str = "call-1", *, lease_seconds: float = 8) -> Run:
    held_until = timezone.now() + timedelta(seconds=lease_seconds)
    return start_child(parent, call_id, worker="w1", held_until=held_until)


def held(child: Run, parent: Held) -> Held:
    return Held(child.pk, child.thread_id, child.fence, parent.thread_id)


def test_it_is_running_and_nobody_may_claim_it(parent):
    child = own_child(parent)
    child.refresh_from_db()
    assert (child.status, child.attempt, child.worker, child.lost_workers) == ("running", 1, "w1", 0)
    assert child.fence
    assert child.started_at
    assert not claim().runs
    assert [event.type for event in events(child.thread)] == ["run.queued", "message", "run.started"]


def test_it_ends_like_any_other_run(parent):
    child = own_child(parent)
    finish(held(child, parent), answer="done")
    assert status(child) == "success"
    assert not OrmQ.objects.filter(pk=child.queue_id).exists()
    assert_whole([child.thread_id, parent.thread_id])


def test_its_lease_can_be_renewed_with_the_value_it_was_started_with(parent):
    held_until = timezone.now() + timedelta(seconds=8)
    child = start_child(parent, worker="w1", held_until=held_until)
    assert claims.renew({child.queue_id: held_until}, 8)[0] == {child.queue_id}


def test_it_is_claimed_again_when_its_lease_ends_and_the_first_attempt_can_write_nothing(parent):
    child = own_child(parent)
    lose_lease(child)
    (again,) = claim(worker="w2").runs
    assert (again.run.pk, again.run.attempt, again.run.lost_workers) == (child.pk, 2, 1)
    (refusal,) = commit([Progress(held=held(child, parent), entries=[ai("from the dead")])])
    assert isinstance(refusal, Fenced)


def test_a_call_that_has_a_child_does_not_start_it_again(parent):
    child = own_child(parent)
    fence = Run.objects.get(pk=child.pk).fence
    verb = child_verb(parent, worker="w2", held_until=timezone.now() + timedelta(seconds=8))
    for found, now in commit([verb, verb]):
        assert (found.pk, now) == (child.pk, False)
    assert Run.objects.get(pk=child.pk).fence == fence


def test_the_same_call_twice_in_one_transaction_is_one_child(parent):
    (first, now), (second, again) = commit([child_verb(parent), child_verb(parent)])
    assert (now, again) == (True, False)
    assert first.pk == second.pk


def test_a_reply_and_its_children_are_there_together_or_not_at_all(parent):
    reply = Progress(held=parent, entries=[ai("I will ask somebody.")])
    commit([reply, child_verb(parent)])
    assert transcript(parent.thread_id)[-1] == "ai: I will ask somebody."
    lost = Held(parent.run_id, parent.thread_id, parent.fence + 1)
    refused = commit([Progress(held=lost, entries=[ai("again")]), child_verb(lost, "call-2")])
    assert [type(one) for one in refused] == [Fenced, Fenced]
    assert transcript(parent.thread_id)[-1] == "ai: I will ask somebody."
    assert Run.objects.filter(parent_id=parent.run_id).count() == 1
