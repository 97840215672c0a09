"""Verbs that end runs. The first terminal state wins: whoever comes later finds the run no longer held."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from django.utils import translation

from engine.reasons import Reason, to_plain
from engine.text import clean, clean_json
from runs import log, queue
from runs.errors import CheckpointNotFound, RunNotFound, Steered
from runs.event_types import Fact, RunEnded, TaskEnded
from runs.explain import REASON, explain
from runs.graphs import returning
from runs.lifecycle.continuing import tell_lead
from runs.lifecycle.progress import Progress
from runs.lifecycle.rewinding import roll_back
from runs.lifecycle.start import BRIEF_LENGTH, enter_transcript, its_turn
from runs.lifecycle.steering import leave_unread
from runs.models import Run
from runs.statuses import ENDED, ErrorCode, RunStatus, ThreadStatus, WaitingFor
from runs.transcript import WireMessage, closing_answers, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from runs.ledger import Entry, Ledger
    from runs.lifecycle.commit import Held
    from runs.models import Thread

THREAD_AFTER = {
    RunStatus.SUCCESS: ThreadStatus.IDLE,
    RunStatus.CANCELLED: ThreadStatus.IDLE,
    RunStatus.INTERRUPTED: ThreadStatus.IDLE,
    RunStatus.ERROR: ThreadStatus.ERROR,
    RunStatus.TIMEOUT: ThreadStatus.ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ends."""

    status: RunStatus
    stop_reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    error_code: str = ""
    error: str = ""
    cancelled_by: str = ""
    result: str = ""  # the answer, for the card's brief
    paused: bool = False  # a graph that waits for somebody: it ends well, and its thread says interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Last entries, counters and the end, all or nothing. The next waiting run of the thread gets its turn.

    Raises Fenced, and Steered when the run would end well although a message waits that it has not picked up.
    Result: the Run as it has ended.
    """

    held: Held
    ending: Ending
    entries: Sequence[Entry] = ()
    parent_entries: Sequence[Fact] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line_of(self) -> UUID:
        return self.held.thread_id

    def thread_ids(self) -> tuple[UUID, ...]:
        return self.held.thread_ids()

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.held.run_id,)

    def apply(self, ledger: Ledger) -> Run:
        run = ledger.held(self.held.run_id, self.held.fence)
        if run.steers and self.ending.status == RunStatus.SUCCESS and not self.ending.stop_reason:
            raise Steered(f"run {run.pk} has a message to pick up")
        Progress(held=self.held, entries=self.entries, parent_entries=self.parent_entries, changes=self.changes).apply(
            ledger
        )
        end(ledger, run, _as_asked(run, self.ending))
        return run


def _as_asked(run: Run, ending: Ending) -> Ending:
    """A run that somebody had asked to stop before its time ran out ends the way it was asked to."""
    if ending.status is not RunStatus.TIMEOUT or not run.cancel_requested:
        return ending
    status = RunStatus(run.cancel_requested)
    return replace(ending, status=status, error_code=cancel_code(status), error="", detail={}, cancelled_by="")


def end(ledger: Ledger, run: Run, ending: Ending, *, rolled_back: bool = False) -> None:
    """Move a run to a terminal state, with exactly one terminal event on its thread and one on its parent's.

    The next waiting run of the thread gets its turn; with `rolled_back`, in the state before this run.
    """
    _close(ledger, run, ending)
    if rolled_back:
        roll_back(ledger, ledger.threads[run.thread_id], run)
    paused = returning.waits(run.thread_id, without=run.pk) if rolled_back else ending.paused
    after = ThreadStatus.INTERRUPTED if paused else THREAD_AFTER[ending.status]
    _next_in_line(ledger, ledger.threads[run.thread_id], after)


def settle_unattended(ledger: Ledger, run: Run) -> None:
    """Settle a run that ends while no worker has it: the words it had streamed are kept, open calls get an answer."""
    if not run.attempt:
        return
    unfinished = log.unfinished_reply(run.thread_id, run.pk)
    left: list[WireMessage] = [{"type": "ai", "partial": True, **unfinished}] if unfinished else []
    started = Run.objects.filter(parent_id=run.pk).values_list("tool_call_id", "pk", "thread_id")
    children = {str(call_id): (pk, thread_id) for call_id, pk, thread_id in started}
    left.extend(closing_answers(load([run.thread_id]).get(run.thread_id, []), children))
    ledger.append(ledger.threads[run.thread_id], run.pk, left)


def _close(ledger: Ledger, run: Run, ending: Ending) -> None:
    leave_unread(ledger, run)
    ledger.change(
        run,
        status=ending.status.value,
        waiting_for=WaitingFor.NOTHING.value,
        ended_at=ledger.now,
        stop_reason=ending.stop_reason,
        stop_detail=_detail(ending),
        error_code=ending.error_code,
        error=str(clean(ending.error)),
        cancelled_by=ending.cancelled_by or run.cancelled_by,
    )
    ledger.ended(run)
    shared = _ended_facts(run)
    thread = ledger.threads[run.thread_id]
    ledger.append(thread, run.pk, [RunEnded(**shared)])
    parent_thread = ledger.parent_thread_of(run)
    if parent_thread is not None and run.parent_id is not None:
        seconds = max(0.0, (ledger.now - run.started_at).total_seconds()) if run.started_at else None
        fact = TaskEnded(task=str(run.pk), result=ending.result[:BRIEF_LENGTH], seconds=seconds, **shared)
        ledger.append(parent_thread, run.parent_id, [fact])
        tell_lead(ledger, run, ending.result)


def _detail(ending: Ending) -> dict[str, Any]:
    """What stopped it, with the parts of the error's sentence, so that it can be said in each reader's language."""
    reason = {REASON: clean_json(to_plain(ending.error))} if isinstance(ending.error, Reason) else {}
    return {**ending.detail, **reason}


def _ended_facts(run: Run) -> dict[str, Any]:
    with translation.override("en"):
        explanation = explain(run)
    return {
        "status": run.status,
        "stop_reason": run.stop_reason,
        "error_code": run.error_code,
        "error": run.error,
        "detail": run.stop_detail,
        "why": explanation.sentence if explanation else "",
        "model_calls": run.model_calls,
        "total_tokens": run.total_tokens,
        "cancelled_by": run.cancelled_by,
    }


def _next_in_line(ledger: Ledger, thread: Thread, after: ThreadStatus) -> None:
    line = ledger.line_of(thread)
    if any(ledger.has_its_turn(run) for run in line):
        return
    for run in line:
        if not run.cancel_requested:
            if turn_or_end(ledger, thread, run):
                return
            after = THREAD_AFTER[RunStatus(run.status)]
            continue
        # Superseded while it waited: nobody answers it, but its words stay in the conversation.
        enter_transcript(ledger, thread, run)
        status = RunStatus(run.cancel_requested)
        _close(ledger, run, Ending(status=status, error_code=cancel_code(status)))
        after = THREAD_AFTER[status]
    thread.status = after.value
    ledger.touch(thread)


def turn_or_end(ledger: Ledger, thread: Thread, run: Run) -> bool:
    """Give a run its turn. False: it has ended instead, because the step it was to begin at is gone."""
    try:
        its_turn(ledger, thread, run)
    except CheckpointNotFound:
        _close(ledger, run, Ending(status=RunStatus.ERROR, error_code=ErrorCode.CHECKPOINT_GONE))
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Ask a run to end. One that nobody executes ends at once; a running one is flagged and its worker rung up.

    Nobody executes a run that is pending, or whose worker has let its lease lapse: should it live, it is fenced.

    Result: True when it was active, False when it had ended before. `lock_threads` are the run's thread and, for a
    child, its parent's thread. With `only_waiting` a run whose turn has come is left alone, which is False too. A run
    that is superseded (INTERRUPTED) while it waits ends when its turn comes, so that its words are kept.
    """

    locks_queue_row: ClassVar[bool] = True  # a worker that claims the run holds its queue row and wants the thread next

    run_id: UUID
    lock_threads: tuple[UUID, ...]
    status: RunStatus = RunStatus.CANCELLED
    by: str = ""
    only_waiting: bool = False

    def thread_ids(self) -> tuple[UUID, ...]:
        return self.lock_threads

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.run_id,)

    def apply(self, ledger: Ledger) -> bool:
        run = ledger.runs.get(self.run_id)
        if run is None:
            raise RunNotFound(self.run_id)
        waits = run.status == RunStatus.PENDING and not ledger.has_its_turn(run)
        if run.status in ENDED or (self.only_waiting and not waits):
            return False
        lost = run.status == RunStatus.RUNNING and queue.lapsed(run.queue_id, ledger.now)
        if lost or (run.status == RunStatus.PENDING and not (waits and self.status == RunStatus.INTERRUPTED)):
            settle_unattended(ledger, run)
            end(ledger, run, Ending(status=self.status, cancelled_by=self.by, error_code=cancel_code(self.status)))
            return True
        if not run.cancel_requested:
            ledger.change(run, cancel_requested=self.status.value, cancelled_by=self.by)
        ledger.ring_cancel(run.pk)
        return True


def cancel_code(status: RunStatus) -> str:
    return ErrorCode.SUPERSEDED if status == RunStatus.INTERRUPTED else ErrorCode.CANCELLED
