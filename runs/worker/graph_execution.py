"""A run of a graph: the same life as every run, with LangGraph thinking and its checkpoints kept in our rows.

What the graph's state says is the truth; its messages enter the transcript by their ids, step by step.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from uuid import uuid5

from engine.errors import explain_model_error
from engine.graphs.loading import GraphBroken, opened
from runs.assistant_ids import assistant_id
from runs.errors import Fenced
from runs.event_types import GraphPart
from runs.graphs.acting import acting_as
from runs.graphs.checkpoints import Stand
from runs.lifecycle import Ending, Progress
from runs.options import OF_THE_SERVER
from runs.statuses import ErrorCode, RunStatus
from runs.transcript import last_answer, text_of
from runs.worker.executor import Execution
from runs.worker.graph_loop import GaveUp, on_graph_loop
from runs.worker.graph_plans import GraphPlan, redacted
from runs.worker.leads import CannotRun
from runs.worker.steps import task_steps

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from engine.graphs.loading import Loaded
    from engine.graphs.running import CallCounter, GraphCall, Piece, Standing
    from runs.transcript import WireMessage
    from runs.worker.host import RunHost
    from runs.worker.starting import Ready

logger = logging.getLogger(__name__)
_LONGEST_VALUES = 4_000  # characters of a result that is no message


def execution_of(host: RunHost, ready: Ready) -> Execution:
    """The execution of a claimed run, by what it runs with."""
    kind = GraphExecution if isinstance(ready.plan, GraphPlan) else Execution
    return kind(host, ready)


class GraphExecution(Execution):
    """The execution of one claimed run of a graph."""

    _host_loop: asyncio.AbstractEventLoop
    _over = False  # nothing that still comes from the graph is taken any more
    _counted: CallCounter
    _values: dict[str, Any] | None = None
    _standing: Standing | None = None
    _answered_once = False  # the run's own request; what comes after it are messages sent meanwhile

    async def _attempted(self) -> bool:
        self._over = False
        try:
            return await super()._attempted()
        finally:
            self._over = True

    async def _think(self, plan: GraphPlan) -> Ending:  # type: ignore[override]
        from engine.graphs.running import CallCounter

        self._unsaved |= plan.snapshot
        self._host_loop = asyncio.get_running_loop()
        self._counted = CallCounter()
        self._known = {str(message.get("id")) for message in self._transcript}
        self._answered_calls = {str(m["tool_call_id"]) for m in self._transcript if m.get("tool_call_id")}
        self._before = self._meter.model_calls, self._meter.input_tokens, self._meter.output_tokens
        loaded = await asyncio.to_thread(plan.load)
        standing = self._standing
        if not self._answered_once:
            standing = await on_graph_loop(self._drive_graph(plan, loaded, steered=[]))
            self._answered_once = True
        while self._steered:
            steered = await self._read_steers()
            wired = self._transcript[-len(steered) :]
            self._known |= {str(message["id"]) for message in wired}
            standing = await on_graph_loop(self._drive_graph(plan, loaded, steered=wired))
        self._standing = standing
        return self._ended_at(standing, plan)

    # --- on the graphs' loop ------------------------------------------------------------------------------------
    async def _drive_graph(self, plan: GraphPlan, loaded: Loaded, *, steered: list[WireMessage]) -> Standing | None:
        """Run the graph until it ends or waits. Returns where it stands then."""
        from engine.graphs import running
        from runs.graphs.saver import FencedSaver

        saver = FencedSaver(self._host.database, self._held, self._host_loop)
        config = self._config(plan, now=bool(steered))
        with acting_as(plan.owner_id, str(self._row.pk)):
            async with opened(loaded, config) as made:
                graph = running.with_saver(made, saver)
                first = await running.standing(graph, config)
                if plan.begun and first is not None and not steered:
                    await self._here(self._stand(first))
                    if _stopped_before(first, plan.asked.get("interrupt_before")):
                        return first
                if plan.asked.get("update") and not steered:
                    return await self._updated(graph, config, plan.asked["update"])
                call = self._call(plan, graph, config, first, steered)
                async with aclosing(running.stream(graph, call)) as pieces:
                    async for piece in pieces:
                        await self._take(piece)
                last = await running.standing(graph, self._config(plan, now=True))
                if last is not None and last.interrupts:
                    await self._here(self._stand(last, is_step=False))  # what it asks is known only now
                return last

    async def _updated(self, graph: Any, config: dict[str, Any], update: dict[str, Any]) -> Standing | None:
        """Write the state as a client asked, as if a node had; nothing runs."""
        from engine.graphs import running

        values = update.get("values")
        given = running.with_messages(values) if isinstance(values, dict) else values
        await graph.aupdate_state(config, given, as_node=update.get("as_node"))
        standing = await running.standing(graph, {"configurable": {"thread_id": str(self._row.thread_id)}})
        if standing is not None:
            await self._here(self._stand(standing))
        return standing

    def _config(self, plan: GraphPlan, *, now: bool = False) -> dict[str, Any]:
        """LangGraph's config. `now`: the thread's newest state, wherever the run began."""
        asked, assistant = plan.asked, assistant_id(plan.name)
        begins_at = {} if now or plan.begun or not asked.get("checkpoint_id") else asked["checkpoint_id"]
        place = {"thread_id": str(self._row.thread_id), "run_id": str(self._row.pk)}
        ids = {"graph_id": plan.name, "assistant_id": assistant}
        own = {name: value for name, value in self._row.metadata.items() if name not in OF_THE_SERVER}
        config: dict[str, Any] = {
            "run_name": plan.name,
            "configurable": {
                **asked.get("configurable", {}),
                **place,
                **ids,
                **({"checkpoint_id": begins_at} if begins_at else {}),
            },
            "metadata": {**place, **plan.thread_metadata, **ids, **own},
            "callbacks": [self._counted],
            "tags": asked.get("tags", []),
        }
        if "recursion_limit" in asked:
            config["recursion_limit"] = asked["recursion_limit"]
        return config

    def _call(
        self, plan: GraphPlan, graph: Any, config: dict[str, Any], first: Standing | None, steered: list[WireMessage]
    ) -> GraphCall:
        from engine.graphs.running import GraphCall

        asked, given, command = plan.asked, None, None
        if steered:
            given = _input(graph, plan, {}, steered)
        elif not plan.begun and asked.get("command"):
            command = asked["command"]
        elif not plan.begun and not asked.get("go_on"):
            in_state = {message.get("id") for message in first.messages} if first is not None else set()
            fresh = [one for one in plan.fresh if one.get("id") not in in_state and "summary" not in one]
            given = _input(graph, plan, asked.get("input"), fresh)
        return GraphCall(
            input=given,
            command=command,
            config=config,
            context=asked.get("context"),
            interrupt_before=asked.get("interrupt_before"),
            interrupt_after=asked.get("interrupt_after"),
            subgraphs=bool(asked.get("stream_subgraphs")),
            modes=tuple(asked.get("stream_mode", ())),
        )

    async def _take(self, piece: Piece) -> None:
        from engine.graphs.running import Standing, Token

        if isinstance(piece, Token):
            self._host_loop.call_soon_threadsafe(self._add_token, piece.message_id, piece.text)
        elif isinstance(piece, Standing):
            await self._here(self._stand(piece))
        else:
            await self._here(self._tell(GraphPart(mode=piece.mode, ns=piece.ns, data=piece.data)))

    async def _here(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do `work` on the host's loop, where the run's rows are written."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._host_loop))

    # --- on the host's loop -------------------------------------------------------------------------------------
    def _add_token(self, message_id: str, text: str) -> None:
        if not self._over and message_id not in self._known:
            self._deltas.add(message_id, text)

    async def _tell(self, part: GraphPart) -> None:
        self._refuse_what_is_late()
        await self._write(Progress(held=self._held, entries=[part], changes=self._metered()))

    async def _stand(self, standing: Standing, *, is_step: bool = True) -> None:
        """Store what a step of the graph has brought: its messages, its other values, where it goes on."""
        self._refuse_what_is_late()
        entries = [message for message in map(self._named, standing.messages) if self._is_new(message)]
        for entry in entries:
            self._known.add(str(entry["id"]))
            if entry["type"] == "ai":
                self._deltas.settled()
            if entry.get("tool_call_id"):
                self._answered_calls.add(str(entry["tool_call_id"]))
        changed = standing.values != self._values
        self._values = standing.values
        self._transcript.extend(entries)
        verb = Stand(
            held=self._held,
            checkpoint_id=standing.checkpoint_id,
            shown=self._shown(standing),
            entries=entries,
            parent_entries=task_steps(self._row, entries, self._meter),
            changes=self._metered(),
            values=standing.values if changed else None,
            is_step=is_step,
        )
        await self._write(verb)

    def _refuse_what_is_late(self) -> None:
        if self._over:
            raise Fenced(f"run {self._row.pk} has ended")

    def _named(self, message: WireMessage) -> WireMessage:
        """A message whose graph gives it no id gets one that it keeps."""
        if message.get("id"):
            return message
        said = json.dumps([message.get("type"), message.get("content")], sort_keys=True, default=str)
        return {**message, "id": str(uuid5(self._row.thread_id, said))}

    def _is_new(self, message: WireMessage) -> bool:
        known = str(message["id"]) in self._known
        return not known and str(message.get("tool_call_id")) not in self._answered_calls

    def _shown(self, standing: Standing) -> dict[str, Any]:
        stored = {str(message.get("id")): message for message in self._transcript}
        messages = map(self._named, standing.messages)
        return {
            "values": standing.values,
            "messages": [m["id"] if _same(stored.get(str(m["id"])), m) else m for m in messages],
            "next": standing.next,
            "tasks": standing.tasks,
            "metadata": standing.metadata,
        }

    def _metered(self) -> dict[str, Any]:
        """The run's counts. Calls are counted where they are made: many never show in the graph's own messages."""
        counted, meter = self._counted, self._meter
        calls, taken, given = self._before
        meter.model_calls = calls + counted.model_calls
        if counted.input_tokens is not None or counted.output_tokens is not None:
            meter.input_tokens = (taken or 0) + (counted.input_tokens or 0)
            meter.output_tokens = (given or 0) + (counted.output_tokens or 0)
            meter.guard_tokens = meter.input_tokens + meter.output_tokens
        named = {"model": counted.model} if counted.model else {}
        return {**self._changes(), **named}

    # --- ending -------------------------------------------------------------------------------------------------
    def _ended_at(self, standing: Standing | None, plan: GraphPlan) -> Ending:
        waits = standing is not None and bool(standing.next)
        answer = ""
        if plan.asked.get("update") is None:
            answer = last_answer(_since_asked(self._transcript))
            if not (answer or waits or standing is None or standing.messages):
                answer = self._told_values(standing)
        self._unsaved |= self._metered()
        return Ending(status=RunStatus.SUCCESS, result=answer, paused=waits)

    def _told_values(self, standing: Standing) -> str:
        """The result of a graph that has no messages, as one: whoever asked reads it there."""
        text = json.dumps(standing.values, ensure_ascii=False, indent=1)
        text = text if len(text) <= _LONGEST_VALUES else text[:_LONGEST_VALUES] + " …"
        message = {"type": "ai", "id": str(uuid5(self._row.pk, "values")), "content": f"```json\n{text}\n```"}
        self._pending = [message]
        self._transcript.append(message)
        return text

    def _fault(self, fault: Exception) -> Ending:
        if isinstance(fault, CannotRun):
            return Ending(status=RunStatus.ERROR, error_code=fault.code, error=str(fault))
        if isinstance(fault, GraphBroken):
            return Ending(status=RunStatus.ERROR, error_code=ErrorCode.GRAPH_BROKEN, error=str(fault))
        logger.error("run %s of graph %s failed", self._row.pk, self._row.agent, exc_info=fault)
        known = explain_model_error(fault)
        if known.code != ErrorCode.MODEL_FAILED:
            return Ending(status=RunStatus.ERROR, error_code=ErrorCode(known.code), error=known.sentence)
        words = redacted(str(fault))
        name = "cancelled" if isinstance(fault, GaveUp) else type(fault).__name__
        return Ending(
            status=RunStatus.ERROR, error_code=ErrorCode.GRAPH_FAILED, error=f"{name}: {words}" if words else name
        )


def _stopped_before(standing: Standing, names: Any) -> bool:
    """Whether the run had come to where it was asked to stop: going on would be what only a person may ask for."""
    return bool(standing.next) and bool(names) and (names == "*" or not set(names).isdisjoint(standing.next))


def _same(stored: WireMessage | None, message: WireMessage) -> bool:
    fields = ("type", "content", "tool_calls")
    return stored is not None and all(stored.get(name) == message.get(name) for name in fields)


def _since_asked(transcript: list[WireMessage]) -> list[WireMessage]:
    """The messages after the last one of a person."""
    asked = (at for at in range(len(transcript), 0, -1) if transcript[at - 1].get("type") == "human")
    return transcript[next(asked, 0) :]


def _input(graph: Any, plan: GraphPlan, given: Any, fresh: list[WireMessage]) -> Any:
    """What goes in: the request's keys with the messages that the state does not know yet. Raises CannotRun."""
    from engine.graphs.running import message_of, takes_messages

    if takes_messages(graph):
        keys = given if isinstance(given, dict) else {}
        messages = [message_of(message) for message in fresh]
        return {**keys, "messages": messages} if messages else keys
    if given not in (None, {}):
        return given
    words = text_of(fresh[-1]).strip() if fresh else ""
    try:
        read = json.loads(words)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        names = ", ".join(sorted(name for name in graph.channels if not name.startswith(("__", "branch:"))))
        why = f"{plan.name} takes no messages: send a JSON object with some of its keys ({names})"
        raise CannotRun(ErrorCode.GRAPH_BROKEN, why)
    return read
