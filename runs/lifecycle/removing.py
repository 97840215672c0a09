"""Ending a run at once, whoever executes it, and removing its rows: nobody writes anything of it afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from django.db import transaction

from engine.text import clean
from runs.errors import RunNotFound
from runs.lifecycle.commit import again_after_deadlock, commit
from runs.lifecycle.ending import Ending, cancel_code, end, settle_unattended
from runs.models import Run, Thread
from runs.statuses import ENDED, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from runs.ledger import Ledger

_WHO_LENGTH = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class EndNow:
    """End a run without waiting for its worker, which is fenced from then on and told to stop.

    What it had written so far is kept and settled. Result: False when it had ended before. Raises RunNotFound.
    `lock_threads` are the run's thread and, for a child, its parent's thread.
    """

    locks_queue_row: ClassVar[bool] = True

    run_id: UUID
    lock_threads: tuple[UUID, ...]
    by: str = ""

    def thread_ids(self) -> tuple[UUID, ...]:
        return self.lock_threads

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.run_id,)

    def apply(self, ledger: Ledger) -> bool:
        run = ledger.runs.get(self.run_id)
        if run is None:
            raise RunNotFound(self.run_id)
        if run.status in ENDED:
            return False
        settle_unattended(ledger, run)
        status = RunStatus.CANCELLED
        end(ledger, run, Ending(status=status, cancelled_by=self.by, error_code=cancel_code(status)))
        ledger.ring_cancel(run.pk)
        return True


def remove_run(run_id: UUID, *, by: str) -> None:
    """End a run and what it delegated, and delete its row with theirs; what it said stays in its thread.

    Raises RunNotFound. May be called again by whoever finds it half done.
    """
    own = list(Run.objects.filter(pk=run_id).values_list("pk", "thread_id", "parent__thread_id"))
    if not own:
        raise RunNotFound(run_id)
    _end_now(own, by)
    # No child begins any more: whoever would start one is fenced.
    below = Run.objects.active().filter(root_id=run_id).exclude(pk=run_id).order_by("-depth")
    _end_now(list(below.values_list("pk", "thread_id", "parent__thread_id")), by)
    again_after_deadlock(lambda: _delete(run_id))


def _end_now(places: Sequence[tuple[UUID, UUID, UUID | None]], by: str) -> None:
    """End runs, each given with its thread and its parent's thread."""
    who = clean(by)[:_WHO_LENGTH]
    for pk, thread_id, upper in places:
        commit([EndNow(run_id=pk, lock_threads=(thread_id,) if upper is None else (thread_id, upper), by=who)])


@transaction.atomic
def _delete(run_id: UUID) -> None:
    below = Run.objects.filter(root_id=run_id).exclude(pk=run_id)
    thread_ids = set(below.values_list("thread_id", flat=True))
    list(Thread.objects.select_for_update().filter(pk__in=thread_ids).order_by("pk").values_list("pk"))
    Thread.objects.filter(pk__in=thread_ids).delete()
    Run.objects.filter(pk=run_id).delete()
