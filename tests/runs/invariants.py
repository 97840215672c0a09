"""What holds after every commit, whatever happened before: checked over whole threads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import orjson
from django_q.models import OrmQ

from runs.event_types import EventType
from runs.models import Event, Message, Run, Thread
from runs.statuses import ACTIVE, ENDED, RunStatus, ThreadStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID


def assert_whole(thread_ids: Iterable[UUID]) -> None:
    """Logs are gapless, ends are single, the queue holds exactly what may be claimed, and statuses agree."""
    for thread in Thread.objects.filter(pk__in=list(thread_ids)):
        rows = list(Event.objects.filter(thread=thread).order_by("seq"))
        assert [row.seq for row in rows] == list(range(1, thread.last_seq + 1))
        said = set(Message.objects.filter(thread=thread).values_list("seq", "run_id"))
        assert said == {(row.seq, row.run_id) for row in rows if row.type == EventType.MESSAGE}
        runs = list(Run.objects.filter(thread=thread))
        _single_ends(rows, runs)
        _single_task_ends(rows, runs)
        _one_turn(thread, runs)


def assert_queue_whole() -> None:
    """Every row of the queue belongs to an active run, and the other way round."""
    queued = Run.objects.filter(queue_id__isnull=False)
    assert set(OrmQ.objects.values_list("pk", flat=True)) == set(queued.values_list("queue_id", flat=True))
    assert not queued.filter(status__in=ENDED).exists()


def _single_ends(rows: list[Event], runs: list[Run]) -> None:
    ends = Counter(row.run_id for row in rows if row.type == EventType.RUN_ENDED)
    assert ends == Counter({run.pk: 1 for run in runs if run.status in ENDED})
    statuses = {row.run_id: orjson.loads(row.data)["status"] for row in rows if row.type == EventType.RUN_ENDED}
    assert statuses == {run.pk: run.status for run in runs if run.status in ENDED}


def _single_task_ends(rows: list[Event], runs: list[Run]) -> None:
    ends = Counter(orjson.loads(row.data)["task"] for row in rows if row.type == EventType.TASK_ENDED)
    children = Run.objects.filter(parent__in=[run.pk for run in runs])
    assert ends == Counter({str(child.pk): 1 for child in children if child.status in ENDED})
    begun = Counter(orjson.loads(row.data)["task"] for row in rows if row.type == EventType.TASK_CREATED)
    assert begun == Counter({str(child.pk): 1 for child in children})


def _one_turn(thread: Thread, runs: list[Run]) -> None:
    active = [run for run in runs if run.status in ACTIVE]
    assert (thread.status == ThreadStatus.BUSY) == bool(active)
    with_turn = [run for run in active if run.queue_id is not None]
    assert len(with_turn) == (1 if active else 0)
    assert sum(run.status == RunStatus.RUNNING for run in runs) <= 1
    assert all(run.queue_id is not None for run in runs if run.status == RunStatus.RUNNING)
    assert all(not run.input for run in with_turn)
