"""What is not kept for ever. A django-q2 schedule calls `daily`; each step may be done twice and by anybody."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.module_loading import import_string

from runs import queue
from runs.event_types import EventType
from runs.models import Event, Run, Thread, WorkerHeartbeat
from runs.statuses import ACTIVE, ENDED, ThreadStatus
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from runs.querysets import EventQuerySet

logger = logging.getLogger(__name__)
DAILY = "runs.housekeeping.daily"
_RUNS_PER_TRANSACTION = 100
_GONE_WORKERS_DAYS = 1
# Deltas and steps only: messages, ends and receipts are the thread's history and go when a person deletes it.
_PRUNED = (EventType.DELTA, EventType.TASK_STEP)

Pruner = Callable[[datetime, bool], dict[str, int]]


def daily() -> dict[str, int]:
    """What the schedule runs. Returns how much was removed, which django-q2 keeps as the task's result."""
    removed = housekeep()
    logger.info("housekeeping: %s", removed)
    return removed


def housekeep(*, days: int | None = None, dry_run: bool = False, now: datetime | None = None) -> dict[str, int]:
    """Remove what is older than `days` (runs.retention_days) or of no use any more; {what: how many rows}.

    Other apps name what they want removed in settings.HOUSEKEEPING: functions of (now, dry_run) with such an answer.
    """
    now = now or timezone.now()
    before = now - timedelta(days=registry.current().config.runs.retention_days if days is None else days)
    removed = {
        "deltas_and_steps": _prune_events(before, dry_run=dry_run),
        "queue_results": queue.prune_results(before, dry_run=dry_run),
        "heartbeats": _prune_heartbeats(now, dry_run=dry_run),
        "busy_threads_settled": _settle_threads(dry_run=dry_run),
    }
    for name in settings.HOUSEKEEPING:
        pruner: Pruner = import_string(name)
        removed.update(pruner(now, dry_run))
    return removed


def _prune_events(before: datetime, *, dry_run: bool) -> int:
    ended = Run.objects.filter(pruned=False, ended_at__lt=before, status__in=ENDED).order_by("ended_at")
    old = ended.values_list("pk", "thread_id")
    if dry_run:
        runs = list(old)
        parts = (runs[at : at + _RUNS_PER_TRANSACTION] for at in range(0, len(runs), _RUNS_PER_TRANSACTION))
        return sum(_steps_of(part).count() for part in parts)
    removed = 0
    while part := list(old[:_RUNS_PER_TRANSACTION]):
        with transaction.atomic():
            removed += _steps_of(part).delete()[0]
            Run.objects.filter(pk__in=[run_id for run_id, _thread_id in part]).update(pruned=True)
    return removed


def _steps_of(runs: Sequence[tuple[UUID, UUID]]) -> EventQuerySet:
    """The rows of these runs, each (run, its thread), that are not kept."""
    run_ids, thread_ids = zip(*runs, strict=True)
    found: EventQuerySet = Event.objects.filter(thread_id__in=set(thread_ids), run_id__in=run_ids, type__in=_PRUNED)
    return found


def _prune_heartbeats(now: datetime, *, dry_run: bool) -> int:
    """Workers that ended without a word, when no worker has lived since to remove their rows."""
    gone = WorkerHeartbeat.objects.filter(seen_at__lt=now - timedelta(days=_GONE_WORKERS_DAYS))
    return gone.count() if dry_run else gone.delete()[0]


def _settle_threads(*, dry_run: bool) -> int:
    """Threads that say busy although nothing is active on them, as after rows were removed by hand."""
    busy = Thread.objects.filter(status=ThreadStatus.BUSY)
    stale = busy.filter(~Exists(Run.objects.filter(thread_id=OuterRef("pk"), status__in=ACTIVE)))
    return stale.count() if dry_run else stale.update(status=ThreadStatus.IDLE.value)
