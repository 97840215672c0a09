"""Repairs what a lost machine or a deleted row may have left. Every step may be done twice, by any worker."""

from __future__ import annotations

import logging

from django.db.models import Exists, OuterRef, Q

from runs import queue
from runs.ledger import Ledger
from runs.lifecycle import Cancel, commit_one
from runs.models import Run
from runs.statuses import ACTIVE, ENDED, RunStatus, ThreadStatus

logger = logging.getLogger(__name__)
_MOST_PER_SWEEP = 50


def sweep() -> None:
    _cancel_orphans()
    _restore_queue_rows()


def _cancel_orphans() -> None:
    """Children whose parent has ended: nobody waits for them."""
    orphans = Run.objects.active().filter(parent__status__in=ENDED, cancel_requested="")
    rows = orphans.values_list("pk", "thread_id", "parent__thread_id")[:_MOST_PER_SWEEP]
    for run_id, thread_id, parent_thread_id in list(rows):
        commit_one(Cancel(run_id=run_id, lock_threads=(thread_id, parent_thread_id), by="parent"))


def _restore_queue_rows() -> None:
    """Runs that no worker can ever claim because their queue row is gone, or whose turn was never called."""
    for run_id, thread_id in _without_queue_row():
        with Ledger(thread_ids=[thread_id], run_ids=[run_id]) as ledger:
            run = ledger.runs.get(run_id)
            if run is None or run.status not in ACTIVE or queue.exists(run.queue_id):
                continue
            logger.warning("run %s had no queue row; it is queued again", run_id)
            thread = ledger.threads[thread_id]
            ledger.append(thread, run.pk, run.input)
            ledger.change(run, input=[])
            thread.status = ThreadStatus.BUSY.value
            ledger.touch(thread)
            ledger.make_claimable(run)


def _without_queue_row() -> list[tuple[object, object]]:
    first_in_line = ~Exists(
        Run.objects.filter(thread_id=OuterRef("thread_id"), status__in=ACTIVE)
        .filter(Q(queue_id__isnull=False) | Q(created_at__lt=OuterRef("created_at")))
        .exclude(pk=OuterRef("pk"))
    )
    lost = Run.objects.active().filter(queue_id__isnull=False).exclude(queue_id__in=queue.known_ids())
    stuck = Run.objects.filter(first_in_line, status=RunStatus.PENDING, queue_id__isnull=True)
    rows = list(lost.values_list("pk", "thread_id")[:_MOST_PER_SWEEP])
    return [*rows, *stuck.values_list("pk", "thread_id")[:_MOST_PER_SWEEP]]
