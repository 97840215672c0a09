"""One run, from claim to end: drive the agent, store each step before the next model call, end exactly once."""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from engine.agent import (
    Step,
    Summary,
    TextDelta,
    counters_of,
    delegation_message,
    final_text,
    is_answered,
    partial_text,
    refusal_of_last,
    settle,
)
from engine.delegation.task import TASK, as_name
from engine.errors import explain_model_error
from engine.ports import ChildCall, Counters, RunContext
from engine.reasons import Reason, reason_of
from engine.reasons import gettext_noop as _
from engine.stop import StopReason
from engine.text import clean
from engine.wire import from_wire, summary_from_wire, summary_to_wire, to_wire
from runs import clock, services
from runs.errors import Fenced, Steered
from runs.group_commit import NO_DATABASE
from runs.lifecycle import Ending, Finish, HandOver, Progress, ReadSteers
from runs.statuses import ErrorCode, RunStatus
from runs.transcript import closing_answers
from runs.worker import plans
from runs.worker.delegate import LocalDelegate
from runs.worker.deltas import Deltas
from runs.worker.driving import DriveFailed, begun_at, parts_of, uncancelled
from runs.worker.steps import Meter, delegations, only_delegations, task_steps

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage, ToolMessage
    from langchain_core.messages.tool import ToolCall

    from engine.limits import Limits
    from runs.event_types import Delta
    from runs.transcript import WireMessage
    from runs.worker.host import RunHost
    from runs.worker.starting import Ready

logger = logging.getLogger(__name__)
UNKNOWN_OUTCOME = (
    "Interrupted: the worker was lost while this call was running, so its outcome is unknown. It was not repeated."
    " Check what it did before you call it again."
)


def execute_run(run_id: str) -> None:
    """What a queue row names. Only this project's asyncio worker executes runs; it never calls this."""
    raise RuntimeError(f"run {run_id}: start workers with `manage.py qcluster`, which installs the worker for runs")


class Execution:
    """The execution of one claimed run. `run` returns when nothing is left to do here; it never raises for the run."""

    def __init__(self, host: RunHost, ready: Ready) -> None:
        claimed = ready.claimed
        self._host = host
        self._plan = ready.plan
        self._row = claimed.run
        self._held = claimed.held
        self._transcript: list[WireMessage] = list(claimed.transcript)
        self._queue_id = claimed.queue_id
        self._deltas = Deltas(self._send_delta, patient=claimed.run.depth > 0)
        self._meter = Meter(claimed.run)
        self._counters = Counters()
        self._pending: list[WireMessage] = []  # the last reply, kept back so that it is stored together with the end
        self._delegate: LocalDelegate | None = None
        self._owed: list[asyncio.Future[Any]] = []  # steps that are being written while the run goes on
        self._unsaved: dict[str, Any] = {}  # columns that go with the next write, whichever that is
        self._steered = bool(claimed.run.steers)  # a message waits to be picked up before the next model call

    async def run(self) -> None:
        try:
            await self._run()
        except (Fenced, *NO_DATABASE) as fault:
            # Not ours any more, or no database: write nothing, the lease decides who continues.
            logger.info("run %s: given up quietly here: %s", self._row.pk, fault)
        finally:
            self._deltas.settled()

    async def _run(self) -> None:
        while not await self._attempted():
            self._steered = True  # it was answered, but a message came while it finished

    async def _attempted(self) -> bool:
        """Think to an end and write it. False when it may not end yet."""
        try:
            if self._row.cancel_requested:
                ending = self._stopped_by(self._row.cancel_requested, self._row.cancelled_by)
            elif self._host.stop_of(self._row.pk) or not self._host.holds(self._row.pk):
                raise asyncio.CancelledError  # it came while an end was being written that was refused
            else:
                ending = await self._think_in_time()
        except asyncio.CancelledError:
            stop = self._host.stop_of(self._row.pk)
            if stop is None or not self._host.holds(self._row.pk):
                raise  # the lease is lost or the process ends: nothing may be written
            if stop.hand_over:
                await uncancelled(self._hand_over())
                return True
            ending = self._stopped_by(stop.status, stop.by)
        return await uncancelled(self._finish(ending))

    async def _think_in_time(self) -> Ending:
        try:
            if isinstance(self._plan, Exception):
                raise self._plan
            return await self._think_until_deadline(self._plan)
        except plans.CannotRun as refusal:
            return Ending(status=RunStatus.ERROR, error_code=refusal.code, error=reason_of(refusal))
        except (Fenced, *NO_DATABASE):
            raise
        except Exception as fault:  # noqa: BLE001 - the run's outermost edge
            return self._fault(fault)

    async def _think_until_deadline(self, plan: Any) -> Ending:
        started = self._row.started_at or clock.now()
        left = started + timedelta(seconds=plan.limits.timeout_seconds) - clock.now()
        try:
            async with asyncio.timeout(max(0.0, left.total_seconds())) as deadline:
                return await self._think(plan)
        except TimeoutError:
            if not deadline.expired():
                raise
        detail = {"limit": plan.limits.timeout_seconds, "layer": plan.limits.timeout_layer}
        return Ending(status=RunStatus.TIMEOUT, error_code=ErrorCode.TIMED_OUT, detail=detail)

    # --- thinking -----------------------------------------------------------------------------------------------
    async def _think(self, plan: plans.Plan) -> Ending:
        self._unsaved |= plan.snapshot
        if plan.noted is not None:
            await self._write(Progress(held=self._held, entries=[plan.noted], changes=self._changes()))
        self._delegate = LocalDelegate(self._host, self._held, self._row, plan)
        messages = [from_wire(message) for message in self._transcript if summary_from_wire(message) is None]
        self._counters = self._counted_before(messages, plan.limits)
        context = self._context(plan, self._delegate)
        messages.extend(await self._settle(messages))
        if self._hears(plan):
            messages.extend(await self._read_steers())
        while not is_answered(messages):
            await self._drive(plan, messages, context)
            if not self._hears(plan) or settle(messages):
                break
            messages.extend(await self._read_steers())
        return self._answered(messages)

    async def _drive(self, plan: plans.Plan, messages: list[BaseMessage], context: RunContext) -> None:
        """Let the agent work, to its end or until a message waits and every call is answered.

        It is pulled, so stopping between two steps costs nothing: it goes on from the transcript as any attempt does.
        """
        async with aclosing(parts_of(plan, messages, context)) as parts:
            async for part in parts:
                if isinstance(part, TextDelta):
                    self._deltas.add(part.message_id, part.text, restarts=part.restarts)
                elif isinstance(part, Summary):
                    await self._store_summary(part)
                else:
                    messages.extend(part.messages)
                    await self._store(part)
                    if self._hears(plan) and not is_answered(messages) and not settle(messages):
                        return

    def _hears(self, plan: plans.Plan) -> bool:
        """Whether a message waits that another model call can still answer."""
        capped = self._counters.stop_reason or self._counters.model_calls >= plan.limits.max_turns
        return self._steered and not capped

    async def _read_steers(self) -> list[BaseMessage]:
        """Move the messages that wait for this run into its transcript."""
        await self._flush_pending()
        steers = await self._write(ReadSteers(held=self._held, turn=self._meter.model_calls + 1))
        self._steered = False
        self._transcript.extend(steers)
        return [from_wire(steer) for steer in steers]

    def _context(self, plan: plans.Plan, delegate: LocalDelegate) -> RunContext:
        return RunContext(
            run_id=str(self._row.pk),
            thread_id=str(self._row.thread_id),
            agent_name=plan.agent_name,
            is_subagent=plan.is_subagent,
            system_prompt=plan.system_prompt,
            limits=plan.limits,
            workspace=plan.workspace,
            sandbox=plan.sandbox,
            delegate=delegate,
            roster=plan.roster,
            delegation_enabled=plan.delegation_enabled,
            counters=self._counters,
            pause=delegate.pause,
            summary=next(filter(None, map(summary_from_wire, reversed(self._transcript))), None),
            labels={"run": str(self._row.pk), "thread": str(self._row.thread_id)},
        )

    def _counted_before(self, messages: list[BaseMessage], limits: Limits) -> Counters:
        """What the guards knew when another worker had this run; all zero when it begins."""
        own = messages[begun_at(self._transcript) :]
        counters = counters_of(own, before=messages[: len(messages) - len(own)], limits=limits)
        row = self._row
        counters.model_calls = max(counters.model_calls, row.model_calls)
        # What was stored counts summaries too, and estimates of requests as they were made.
        counters.tokens = row.guard_tokens or counters.tokens
        counters.tokens_estimated |= row.usage_estimated
        if row.stop_reason:
            counters.stop_reason, counters.stop_detail = StopReason(row.stop_reason), dict(row.stop_detail)
        return counters

    async def _settle(self, messages: list[BaseMessage]) -> list[ToolMessage]:
        """Answer the calls a worker before this one left open; none when the run begins."""
        answers = await asyncio.gather(*(self._answer_open_call(call) for call in settle(messages)))
        for answer in answers:
            await self._store(Step([answer]))
        return answers

    async def _answer_open_call(self, call: ToolCall) -> ToolMessage:
        """A delegation finds its child again, or is started now; what else was under way is never repeated."""
        from langchain_core.messages import ToolMessage

        if call["name"] != TASK or self._delegate is None:
            return ToolMessage(
                UNKNOWN_OUTCOME, id=str(uuid4()), tool_call_id=call["id"], name=call["name"], status="error"
            )
        arguments = call["args"]
        result = await self._delegate.run_child(
            ChildCall(
                tool_call_id=call["id"] or "",
                description=clean(str(arguments.get("description", ""))),
                prompt=clean(str(arguments.get("prompt", ""))),
                subagent_type=clean(as_name(arguments.get("subagent_type", ""))),
            )
        )
        self._counters.children_started += result.run_id is not None
        return delegation_message(call["id"] or "", result)

    # --- storing ------------------------------------------------------------------------------------------------
    async def _store(self, step: Step) -> None:
        """Commit a step. The generator's next model call waits for this: the transcript is the checkpoint."""
        await self._flush_pending()
        entries = [to_wire(message) for message in step.messages]
        for entry in entries:
            self._meter.count(entry, self._counters)
            if entry["type"] == "ai":
                self._deltas.settled()
        self._transcript.extend(entries)
        if entries and entries[-1]["type"] == "ai" and not entries[-1].get("tool_calls"):
            self._pending = entries
            return
        calls, progress = delegations(entries), self._progress(entries)
        if not only_delegations(entries):
            if calls and self._delegate is not None:
                self._delegate.announce(calls)
            await self._write(progress)
        elif calls and self._delegate is not None:
            self._delegate.announce(calls, progress)  # stored in the transaction that starts its children
        else:
            # The results of children are rows of their own, found again by their calls: nothing is lost by going on
            # while they are being written.
            self._owed.append(self._submit(progress))

    async def _store_summary(self, summary: Summary) -> None:
        """One more row: the history it stands for stays as it is."""
        await self._flush_pending()
        entry = summary_to_wire(summary, str(uuid4()))
        self._meter.count(entry, self._counters)
        self._transcript.append(entry)
        await self._write(self._progress([entry]))

    async def _flush_pending(self) -> None:
        if self._pending:
            entries, self._pending = self._pending, []
            await self._write(self._progress(entries))

    def _progress(self, entries: list[WireMessage]) -> Progress:
        return Progress(
            held=self._held,
            entries=entries,
            parent_entries=task_steps(self._row, entries, self._meter),
            changes=self._changes(),
        )

    def _changes(self) -> dict[str, Any]:
        unsaved, self._unsaved = self._unsaved, {}
        return {**unsaved, **self._meter.changes(self._counters)}

    async def _write(self, verb: Any) -> Any:
        result = await self._submit(verb)
        told = [result]
        while self._owed:  # written before it: what went wrong there shows here at the latest
            told.append(await self._owed.pop(0))
        self._steered = self._steered or any(one is True for one in told)
        return result

    def _submit(self, verb: Any) -> asyncio.Future[Any]:
        """Write a verb, behind a reply whose children were not started with it."""
        if self._delegate is not None and (reply := self._delegate.take_reply()) is not None:
            written = self._host.database.write(reply)
            self._owed.append(written)
            self._delegate.start_after(written)
        return self._host.database.write(verb)

    def _send_delta(self, delta: Delta) -> None:
        """Not awaited: a lost delta is harmless, its message follows. Columns it carried are written later."""
        unsaved, self._unsaved = self._unsaved, {}

        def written(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled() or answer.exception() is not None:
                self._unsaved = {**unsaved, **self._unsaved}

        verb = Progress(held=self._held, entries=[delta], changes=unsaved)
        self._submit(verb).add_done_callback(written)

    # --- ending -------------------------------------------------------------------------------------------------
    def _answered(self, messages: list[BaseMessage]) -> Ending:
        stop_reason = self._counters.stop_reason or ""
        answer = partial_text(messages) if stop_reason else final_text(messages)
        facts: dict[str, Any] = {"stop_reason": str(stop_reason), "detail": self._counters.stop_detail}
        refused = refusal_of_last(messages)
        if refused:
            return Ending(status=RunStatus.ERROR, error_code=ErrorCode(refused.code), error=refused.sentence, **facts)
        if answer:
            return Ending(status=RunStatus.SUCCESS, result=answer, **facts)
        return Ending(status=RunStatus.ERROR, error_code=ErrorCode.NO_ANSWER, error=Reason(_("no answer")), **facts)

    def _fault(self, fault: Exception) -> Ending:
        if isinstance(fault, DriveFailed):
            known = explain_model_error(fault.cause)
            logger.warning("run %s: %s: %s", self._row.pk, known.code, known.sentence)
            if known.code == ErrorCode.MODEL_FAILED:
                # Without the exception's own words, which may repeat a key.
                logger.error(
                    "run %s: raised at\n%s", self._row.pk, "".join(traceback.format_tb(fault.cause.__traceback__))
                )
            return Ending(status=RunStatus.ERROR, error_code=ErrorCode(known.code), error=known.sentence)
        logger.error("run %s failed", self._row.pk, exc_info=fault)
        error = Reason(_("%(error)s in run %(run)s"), error=type(fault).__name__, run=self._row.pk)
        return Ending(status=RunStatus.ERROR, error_code=ErrorCode.INTERNAL, error=error)

    def _stopped_by(self, status: str, by: str) -> Ending:
        wanted = RunStatus(status) if status in {RunStatus.CANCELLED, RunStatus.INTERRUPTED} else RunStatus.CANCELLED
        code = ErrorCode.SUPERSEDED if wanted == RunStatus.INTERRUPTED else ErrorCode.CANCELLED
        return Ending(status=wanted, error_code=code, cancelled_by=by)

    async def _finish(self, ending: Ending) -> bool:
        """Write the end. False when it is refused because a message waits to be picked up: nothing is written then."""
        kept = self._pending, self._unsaved
        entries, self._pending = self._pending, []
        if ending.status != RunStatus.SUCCESS:
            if self._row.depth == 0:
                await self._host.database.call(services.cancel_children, self._row.pk)
            children = self._delegate.started if self._delegate else None
            entries = [*entries, *self._partial_reply(), *closing_answers(self._transcript, children)]
        if not ending.result and self._deltas.text:
            ending = replace(ending, result=self._deltas.text)
        verb = Finish(
            held=self._held,
            ending=ending,
            entries=entries,
            parent_entries=task_steps(self._row, entries, self._meter),
            changes=self._changes(),
        )
        try:
            ended = await self._write(verb)
        except Steered:
            self._pending, self._unsaved = kept
            return False
        self._host.children.mark_ended(ended, [*self._transcript, *entries])
        return True

    def _partial_reply(self) -> list[WireMessage]:
        if not self._deltas.text:
            return []
        return [{"type": "ai", "id": self._deltas.message_id, "content": self._deltas.text, "partial": True}]

    async def _hand_over(self) -> None:
        """This process stops: another continues from the transcript. A reply under way is asked for again there."""
        await self._flush_pending()
        await self._write(HandOver(held=self._held))
        await self._host.database.call(plans.release_lease, self._queue_id)
