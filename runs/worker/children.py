"""Waiting for child runs, wherever they are executed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from django.db import InterfaceError, OperationalError
from django.utils import translation

from engine.ports import ChildResult, Usage
from engine.stop import StopReason, SubagentStatus
from engine.text import clean
from runs import rows
from runs.explain import explain
from runs.models import Run
from runs.statuses import ENDED, TO_SUBAGENT, RunStatus
from runs.transcript import last_answer, last_answer_of, newest, stopped_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from runs.doorbell import Ring
    from runs.group_commit import GroupCommit
    from runs.transcript import WireMessage

logger = logging.getLogger(__name__)


class ChildWatch:
    """Futures of awaited children, resolved with their results by the next look that finds them ended.

    Rings and the regular beat make it look; one look serves all that are awaited. Of a child that this very process
    executes (`is_here`) it is told.
    """

    def __init__(self, database: GroupCommit, *, is_here: Callable[[UUID], bool]) -> None:
        self._database = database
        self._is_here = is_here
        self._awaited: dict[UUID, asyncio.Future[ChildResult]] = {}
        self._threads: dict[UUID, UUID] = {}  # child thread → child run
        self._looking = False

    def expect(self, run_id: UUID, thread_id: UUID) -> None:
        """Hear of the end of a child that is about to be started: nothing can be missed, so nobody need look."""
        self._awaited.setdefault(run_id, asyncio.get_running_loop().create_future())
        self._threads[thread_id] = run_id

    def forget(self, run_id: UUID, thread_id: UUID) -> None:
        """Nobody waits for this child any more, or it was not started."""
        self._awaited.pop(run_id, None)
        self._threads.pop(thread_id, None)

    async def ended(self, run_id: UUID, thread_id: UUID, *, look: bool = True) -> ChildResult:
        """What came of the child, once it has ended. Registers first and looks afterwards, so no end is missed.

        Without `look` for one that was expected since before it was started.
        """
        future = self._awaited.setdefault(run_id, asyncio.get_running_loop().create_future())
        self._threads[thread_id] = run_id
        try:
            if look:
                await self.look()
            return await asyncio.shield(future)
        finally:
            self.forget(run_id, thread_id)

    def ring(self, ring: Ring) -> None:
        rung = self._threads.keys() if ring.threads is None else ring.threads & self._threads.keys()
        if any(not self._is_here(self._threads[thread_id]) for thread_id in rung):
            self._wake()

    def mark_ended(self, run: Run, transcript: Sequence[WireMessage]) -> None:
        """This process has just written the run's end."""
        future = self._awaited.get(run.pk)
        if future is not None and not future.done():
            future.set_result(_result(run, clean(last_answer(transcript)), transcript))

    def _wake(self) -> None:
        if self._awaited and not self._looking:
            self._looking = True
            asyncio.get_running_loop().create_task(self._look_soon())

    async def _look_soon(self) -> None:
        self._looking = False
        try:
            await self.look()
        except (OperationalError, InterfaceError) as fault:
            logger.warning("awaited children: no database (%s); the regular look follows", fault)

    async def look(self) -> None:
        open_ids = [run_id for run_id, future in self._awaited.items() if not future.done()]
        if open_ids:
            for run_id, result in (await self._database.call(results_of_ended, open_ids)).items():
                future = self._awaited.get(run_id)
                if future is not None and not future.done():
                    future.set_result(result)


def results_of_ended(run_ids: Iterable[UUID]) -> dict[UUID, ChildResult]:
    """What came of those of these children that have ended."""
    wanted = [rows.key_of(run_id) for run_id in run_ids]
    ended = sorted(status.value for status in ENDED)
    places = ", ".join(["%s"] * len(wanted))
    condition = f"id IN ({places}) AND status IN ({', '.join(['%s'] * len(ended))})"
    found = rows.read(Run, condition, [*wanted, *ended], left_out=("definition", "input", "options", "metadata"))
    return {run.pk: _stored_result(run) for run in found}


def result_of(run_id: UUID) -> ChildResult:
    """What came of an ended child, for its parent's model: its full answer, or the sentence that says why not."""
    run = Run.objects.get(pk=run_id)
    return _stored_result(run)


def _stored_result(run: Run) -> ChildResult:
    """The result by what is stored. One that succeeded needs no look at how far it had come."""
    messages = [] if run.status == RunStatus.SUCCESS else newest(run.thread_id)
    return _result(run, last_answer_of(run.thread_id), messages)


def _result(run: Run, answer: str, messages: Sequence[WireMessage]) -> ChildResult:
    status = TO_SUBAGENT[RunStatus(run.status)]
    text = answer if status == SubagentStatus.COMPLETED else _failure_text(run, answer, messages)
    usage = None
    if run.total_tokens is not None:
        usage = Usage(
            input_tokens=run.input_tokens,
            output_tokens=run.output_tokens,
            cached_tokens=run.cached_tokens,
            estimated=run.usage_estimated,
        )
    return ChildResult(
        status=status,
        text=text,
        run_id=str(run.pk),
        thread_id=str(run.thread_id),
        subagent=run.agent,
        stop_reason=StopReason(run.stop_reason) if run.stop_reason in set(StopReason) else None,
        model=run.model,
        usage=usage,
    )


def _how_far(run: Run, messages: Sequence[WireMessage]) -> str:
    """What the lead needs to know to decide whether to ask again for less."""
    if run.started_at is None or run.ended_at is None:
        return "It had not begun."
    seconds = max(0, round((run.ended_at - run.started_at).total_seconds()))
    calls = "one model call" if run.model_calls == 1 else f"{run.model_calls} model calls"
    tools = stopped_tools(messages)
    at_work = f", while these tools were at work: {', '.join(tools)}" if tools else ""
    return f"It had made {calls} in {seconds} s{at_work}."


def _failure_text(run: Run, partial: str, messages: Sequence[WireMessage]) -> str:
    with translation.override("en"):
        explanation = explain(run)
    reason = explanation.what if explanation else ""  # its way out is for people
    text = f"The subagent {run.agent} did not finish ({run.status}). {reason} {run.error}".strip()
    text += f" {_how_far(run, messages)}"
    return f"{text}\n\nWhat it had written until then:\n{partial}" if partial else text
