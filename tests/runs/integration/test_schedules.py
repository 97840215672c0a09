"""Schedules of the queue: by the clock on the wall, and once however long nothing worked."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule
from django_q.scheduler import scheduler
from django_q.tasks import schedule

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("before", [datetime(2026, 10, 23, 6, tzinfo=BERLIN), datetime(2027, 3, 26, 6, tzinfo=BERLIN)])
def test_a_daily_schedule_keeps_its_hour_when_the_clocks_change(
    settings: Settings, before: datetime, monkeypatch: pytest.MonkeyPatch
):
    settings.TIME_ZONE = "Europe/Berlin"
    monkeypatch.setattr(Conf, "TIME_ZONE", "Europe/Berlin", raising=False)
    daily = Schedule(func="x", schedule_type=Schedule.DAILY, next_run=before)
    runs = [before]
    for _day in range(4):
        daily.next_run = daily.calculate_next_run()
        runs.append(daily.next_run.astimezone(BERLIN))
    assert {(run.hour, run.minute) for run in runs} == {(6, 0)}
    assert [later.date() - earlier.date() for earlier, later in itertools.pairwise(runs)] == [timedelta(days=1)] * 4
    assert len({run.utcoffset() for run in runs}) == 2


@pytest.mark.django_db(transaction=True)  # the scheduler closes its connection
def test_a_schedule_that_was_missed_runs_once_and_not_once_for_each_time():
    long_ago = timezone.now() - timedelta(hours=1)
    schedule("builtins.print", schedule_type=Schedule.MINUTES, minutes=1, next_run=long_ago, name="every minute")
    for _turn in range(3):
        scheduler()
    assert OrmQ.objects.count() == 1
    assert Schedule.objects.get().next_run > timezone.now()
