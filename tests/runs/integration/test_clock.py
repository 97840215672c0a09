"""Leases, deadlines and durations follow the database's clock: a machine whose own is wrong takes nobody's runs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from runs import clock
from runs.lifecycle import claims
from runs.statuses import RunStatus
from tests.runs.acts import claim, claimed, finish, say, status
from tests.runs.factories import started
from tests.runs.invariants import assert_whole

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]
HOUR = timedelta(hours=1)


@pytest.fixture(params=[HOUR, -HOUR])
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Set this machine's clock by an hour, while everything goes on."""
    right = timezone.now

    def turn() -> None:
        monkeypatch.setattr(timezone, "now", lambda: right() + request.param)

    yield turn
    monkeypatch.undo()
    clock.look()


def test_a_clock_that_is_set_while_a_run_works_neither_takes_it_nor_gives_negative_times(step):
    run = started()
    held = claimed(run)
    step()
    assert not claim(worker="another").runs
    row = OrmQ.objects.get()
    kept, lock = claims.renew({row.pk: row.lock}, 8)
    assert kept == {row.pk}
    assert timedelta(0) < lock - row.lock < timedelta(minutes=1)
    assert not claim(worker="another").runs
    say(held, "still at work")
    finish(held, answer="done")
    run.refresh_from_db()
    assert (run.status, run.attempt, run.lost_workers) == (RunStatus.SUCCESS, 1, 0)
    assert timedelta(0) <= run.ended_at - run.started_at < timedelta(minutes=1)
    assert timedelta(0) <= run.started_at - run.created_at < timedelta(minutes=1)
    assert_whole([run.thread_id])


def test_what_a_machine_with_a_wrong_clock_starts_can_be_taken_at_once(step):
    step()
    run = started()
    assert [one.run.pk for one in claim().runs] == [run.pk]
    assert status(run) == RunStatus.RUNNING


def test_the_time_goes_on_between_two_looks_and_has_a_zone():
    clock.look()
    first = clock.now()
    assert first.utcoffset() == timedelta(0)
    assert first <= clock.now() < first + timedelta(minutes=1)
    assert isinstance(first, datetime)
