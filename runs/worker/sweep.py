"""Repairs what a lost machine or a deleted row may have left. Every step may be done twice, by any worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from runs import clock, queue, temporary
from runs.ledger import Ledger
from runs.lifecycle import Cancel, commit
from runs.lifecycle.ending import turn_or_end
from runs.models import Run
from runs.statuses import ACTIVE, ENDED, RunStatus

if TYPE_CHECKING:
    from uuid import UUID

logger = logging.getLogger(__name__)
_MOST_PER_SWEEP = 50
_LONGEST_LEASES = 4


def sweep() -> None:
    _cancel_orphans()
    _restore_queue_rows()
    temporary.remove_ended(clock.now(), most=_MOST_PER_SWEEP)
    queue.shorten_leases(clock.now(), longest_seconds=_LONGEST_LEASES * settings.LEASE_SECONDS)


def _cancel_orphans() -> None:
    """Children whose parent has ended: nobody waits for them."""
    orphans = Run.objects.active().filter(parent__status__in=ENDED, continues__isnull=True, cancel_requested="")
    rows = orphans.values_list("pk", "thread_id", "parent__thread_id")[:_MOST_PER_SWEEP]
    for run_id, thread_id, parent_thread_id in list(rows):
        # One that was deleted meanwhile is a refusal in the answer, which nobody needs.
        commit([Cancel(run_id=run_id, lock_threads=(thread_id, parent_thread_id), by="parent")])


def _restore_queue_rows() -> None:
    """Runs that no worker can ever claim because their queue row is gone, or whose turn was never called."""
    for run_id, thread_id in _without_queue_row():
        with Ledger(thread_ids=[thread_id], run_ids=[run_id]) as ledger:
            run = ledger.runs.get(run_id)
            if run is None or run.status not in ACTIVE or queue.exists(run.queue_id):
                continue
            thread = ledger.threads[thread_id]
            if any(ledger.has_its_turn(other) for other in ledger.line_of(thread) if other.pk != run.pk):
                continue  # another one got its turn since we looked
            logger.warning("run %s had no queue row; it is queued again", run_id)
            if not turn_or_end(ledger, thread, run):
                logger.warning("run %s could not begin and has ended", run_id)


def _without_queue_row() -> list[tuple[UUID, UUID]]:
    first_in_line = ~Exists(
        Run.objects.filter(thread_id=OuterRef("thread_id"), status__in=ACTIVE)
        .filter(
            Q(queue_id__isnull=False)
            | Q(created_at__lt=OuterRef("created_at"))
            | Q(created_at=OuterRef("created_at"), pk__lt=OuterRef("pk"))  # several in one commit
        )
        .exclude(pk=OuterRef("pk"))
    )
    lost = Run.objects.active().filter(queue_id__isnull=False).exclude(queue_id__in=queue.known_ids())
    # Running without a row is what rows changed by hand or by another version leave: nobody would ever notice it.
    stuck = Run.objects.filter(first_in_line | Q(status=RunStatus.RUNNING), status__in=ACTIVE, queue_id__isnull=True)
    rows = list(lost.values_list("pk", "thread_id")[:_MOST_PER_SWEEP])
    return [*rows, *stuck.values_list("pk", "thread_id")[:_MOST_PER_SWEEP]]
