"""Ending a run at once, whoever executes it, and removing its rows: nobody writes anything of it afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from django.db import transaction

from engine.text import clean
from runs.errors import RunNotFound, RunsError
from runs.lifecycle.commit import again_after_deadlock, commit
from runs.lifecycle.ending import Ending, cancel_code, end, settle_unattended
from runs.models import Run, Thread
from runs.statuses import ENDED, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from runs.ledger import Ledger
    from runs.lifecycle.start import Start

_WHO_LENGTH = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class EndNow:
    """End a run without waiting for its worker, which is fenced from then on and told to stop.

    What it had written so far is kept and settled, or with `rolled_back` is no part of the thread's state any more.
    Result: False when it had ended before. Raises RunNotFound. `lock_threads` are the run's thread and, for a child,
    its parent's thread.
    """

    locks_queue_row: ClassVar[bool] = True

    run_id: UUID
    lock_threads: tuple[UUID, ...]
    by: str = ""
    rolled_back: bool = False

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
        if not self.rolled_back:
            settle_unattended(ledger, run)
        ending = Ending(status=RunStatus.CANCELLED, cancelled_by=self.by, error_code=cancel_code(RunStatus.CANCELLED))
        end(ledger, run, ending, rolled_back=self.rolled_back)
        ledger.ring_cancel(run.pk)
        return True


def remove_run(run_id: UUID, *, by: str) -> None:
    """End a lead's run and what it delegated, and delete its row with theirs; what it said stays in its thread.

    Raises RunNotFound.
    """
    if not again_after_deadlock(lambda: _removed([run_id], by, rolled_back=False)):
        raise RunNotFound(run_id)


def roll_back_run(run_id: UUID, *, by: str) -> bool:
    """As `remove_run`, and its thread is as it was before. False: it had ended, or was gone, and nothing is changed."""
    active = Run.objects.active().filter(pk=run_id).exists()
    return active and bool(again_after_deadlock(lambda: _removed([run_id], by, rolled_back=True)))


def start_instead(start: Start, *, by: str) -> Run:
    """Start a run in place of all that its thread is at or has waiting: those are rolled back and gone.

    Raises what Start raises; then nothing is changed.
    """

    @transaction.atomic
    def transact() -> Run:
        # The newest first: what waits would otherwise have its turn before its own end.
        line = Run.objects.active().filter(thread_id=start.thread_id, thread__owner_id=start.owner_id)
        replaced = list(line.order_by("-created_at", "-pk").values_list("pk", flat=True))
        run, *ended = commit([start, *_ends(replaced, by, rolled_back=True)])
        if isinstance(run, RunsError):
            raise run
        _delete([pk for pk, was_active in zip(replaced, ended, strict=False) if was_active is True])
        started: Run = run
        return started

    return again_after_deadlock(transact)


@transaction.atomic
def _removed(run_ids: list[UUID], by: str, *, rolled_back: bool) -> list[bool]:
    """Whether each of these runs was active; those that are gone are left out."""
    answers = commit(list(_ends(run_ids, by, rolled_back=rolled_back)))
    own = [answer for answer in answers[: len(run_ids)] if not isinstance(answer, RunsError)]
    if rolled_back and True not in own:
        return []  # it ended meanwhile
    _delete(run_ids)
    return own


def _ends(run_ids: list[UUID], by: str, *, rolled_back: bool) -> Iterable[EndNow]:
    """Verbs for leads' runs, in this order, and then for what they have delegated and not got back yet."""
    who = clean(by)[:_WHO_LENGTH]
    places = {row[0]: row for row in _places(pk__in=run_ids)}
    for run_id in run_ids:
        if run_id in places:
            yield EndNow(run_id=run_id, lock_threads=(places[run_id][1],), by=who, rolled_back=rolled_back)
    for pk, thread_id, upper in _places(root_id__in=run_ids, depth__gt=0, ended_at__isnull=True):
        # Their rows go with their lead's in a moment; this rings up their workers.
        yield EndNow(run_id=pk, lock_threads=(thread_id, upper) if upper else (thread_id,), by=who)


def _places(**which: object) -> list[tuple[UUID, UUID, UUID | None]]:
    return list(Run.objects.filter(**which).order_by("depth", "pk").values_list("pk", "thread_id", "parent__thread_id"))


def _delete(run_ids: list[UUID]) -> None:
    """Remove rows of runs that have ended, with the threads of what they delegated."""
    below = Run.objects.filter(root_id__in=run_ids).exclude(pk__in=run_ids)
    thread_ids = set(below.values_list("thread_id", flat=True))
    list(Thread.objects.select_for_update().filter(pk__in=thread_ids).order_by("pk").values_list("pk"))
    Thread.objects.filter(pk__in=thread_ids).delete()
    Run.objects.filter(pk__in=run_ids).delete()
