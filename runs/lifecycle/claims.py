"""Leases: taking runs from the queue, keeping them, and giving up on those that keep losing their worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, connection, transaction

from runs import clock, queue
from runs.ledger import Ledger
from runs.lifecycle.commit import Held
from runs.lifecycle.ending import Ending, cancel_code, end, settle_unattended
from runs.lifecycle.start import begin_attempt
from runs.models import Run
from runs.rows import as_uuid
from runs.statuses import ENDED, ErrorCode, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from uuid import UUID

    from runs.transcript import WireMessage

_POSTPONE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A run this process now holds, with what it takes to go on."""

    run: Run
    held: Held
    queue_id: int
    transcript: list[WireMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What one claim brought. `lock` is the lease's end exactly as it was stored: renewing compares it."""

    runs: Sequence[Claimed] = ()
    tasks: Sequence[tuple[int, dict[str, Any]]] = ()  # plain django-q2 tasks: (queue id, task)
    lock: datetime | None = None


def claim(
    *,
    free: int,
    most: int,
    workers: int,
    worker: str,
    lease_seconds: float,
    max_attempts: int,
    own: Callable[[], Collection[int]] = frozenset,
) -> Claims:
    """Lease up to a fair share of the waiting rows and move their runs to running under a new fence.

    `own` says which rows this process has: after a stall their leases may be over, but they are not lost. It keeps
    them if it renews them before anybody else takes them.
    """
    clock.look()
    now = clock.now()
    waiting = queue.candidates(now)
    if kept := own():
        waiting = [row for row in waiting if row.queue_id not in kept]
    count = queue.fair_share(len(waiting), workers=workers, free=free, most=most)
    busy = queue.under_way(now) if queue.is_contended(waiting, count) else None
    chosen = [row.queue_id for row in queue.pick(waiting, count, busy)]
    if not chosen:
        return Claims()
    lock = now + timedelta(seconds=lease_seconds)
    try:
        return _claim(chosen, now=now, lock=lock, worker=worker, max_attempts=max_attempts)
    except IntegrityError:
        return _claim_singly(chosen, now=now, lock=lock, worker=worker, max_attempts=max_attempts)


def _claim_singly(chosen: Sequence[int], **facts: Any) -> Claims:
    """One row that the database refuses (a second running run on its thread) must not block its neighbours."""
    runs: list[Claimed] = []
    tasks: list[tuple[int, dict[str, Any]]] = []
    for queue_id in chosen:
        try:
            one = _claim([queue_id], **facts)
        except IntegrityError:
            queue.postpone(queue_id, facts["now"], _POSTPONE_SECONDS)
            continue
        runs.extend(one.runs)
        tasks.extend(one.tasks)
    return Claims(runs=runs, tasks=tasks, lock=facts["lock"])


def _claim(queue_ids: Sequence[int], *, now: datetime, lock: datetime, worker: str, max_attempts: int) -> Claims:
    with transaction.atomic():
        taken = queue.take(queue_ids, now, lock)
        known = taken.runs
        tasks = _plain_tasks({k: v for k, v in taken.payloads.items() if k not in {row[3] for row in known}})
        threads = {thread_id for row in known for thread_id in row[1:3] if thread_id is not None}
        claimed: list[tuple[Run, UUID | None, int]] = []
        with Ledger(
            thread_ids=threads,
            run_ids=[row[0] for row in known],
            transcripts_of=[row[1] for row in known],
            whole_runs=True,
        ) as ledger:
            for run_id, _thread_id, parent_thread_id, queue_id in known:
                run = ledger.runs.get(run_id)
                if run is None or run.status in ENDED:
                    continue  # deleted meanwhile: its row is removed when this lease is over
                if _start_attempt(ledger, run, parent_thread_id, worker=worker, max_attempts=max_attempts):
                    claimed.append((run, parent_thread_id, queue_id))
    runs = [
        Claimed(
            run=run,
            held=Held(run.pk, run.thread_id, run.fence, parent_thread_id),
            queue_id=queue_id,
            transcript=ledger.transcripts.get(run.thread_id, []),
        )
        for run, parent_thread_id, queue_id in claimed
    ]
    return Claims(runs=runs, tasks=tasks, lock=lock)


def _plain_tasks(unknown: Mapping[int, str]) -> list[tuple[int, dict[str, Any]]]:
    """Tasks that are not runs. Rows of runs that have ended, and rows nobody here signed, are removed."""
    tasks, gone = [], []
    for queue_id, payload in unknown.items():
        task = queue.unpack(payload)
        if task is None or task["func"] == queue.RUN_FUNCTION:
            gone.append(queue_id)
        else:
            tasks.append((queue_id, task))
    if gone:
        queue.drop(gone)
    return tasks


def _start_attempt(ledger: Ledger, run: Run, parent_thread_id: UUID | None, *, worker: str, max_attempts: int) -> bool:
    # A run that comes back as running was not given back: whoever had it is gone. A hand-over counts against nobody.
    lost_workers = run.lost_workers + (run.status == RunStatus.RUNNING)
    if lost_workers >= max_attempts:
        settle_unattended(ledger, run)
        end(ledger, run, _given_up(run, lost_workers))
        return False
    ledger.change(run, lost_workers=lost_workers)
    begin_attempt(ledger, run, parent_thread_id, worker=worker)
    return True


def _given_up(run: Run, lost_workers: int) -> Ending:
    if run.cancel_requested:
        status = RunStatus(run.cancel_requested)
        return Ending(status=status, error_code=cancel_code(status))
    return Ending(
        status=RunStatus.ERROR,
        error_code=ErrorCode.WORKER_LOST,
        error=f"its worker died or did not keep its lease; the last of {lost_workers} was {run.worker}",
        detail={"limit": lost_workers, "layer": "runs.max_attempts"},
    )


def renew(held: Mapping[int, datetime], lease_seconds: float) -> tuple[set[int], datetime]:
    """Extend this process's leases. Returns the queue ids that are still ours and the new lock as stored."""
    lock = clock.now() + timedelta(seconds=lease_seconds)
    return queue.renew(held, lock), lock


def cancel_requests() -> list[tuple[UUID, str, str]]:
    """The running runs that somebody wants stopped, whoever executes them: (run, wanted status, by whom). Reads only.

    A partial index answers it and no query is built for it: on SQLite every commit of anybody makes workers ask.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, cancel_requested, cancelled_by FROM runs_run"
            " WHERE cancel_requested <> '' AND status = 'running'"
        )
        return [(as_uuid(run_id), status, by) for run_id, status, by in cursor.fetchall()]


def no_longer_running(run_ids: Sequence[UUID]) -> set[UUID]:
    """Those of these runs that somebody has ended or removed, whoever executes them. Reads only."""
    running = Run.objects.filter(pk__in=run_ids, status=RunStatus.RUNNING).values_list("pk", flat=True)
    return set(run_ids) - set(running)
