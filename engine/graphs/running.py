"""One run of a graph: LangGraph's stream as the parts that the platform stores, shows and counts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langgraph.types import Command

from engine.graphs.plain import plain
from engine.wire import WireError, from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from langchain_core.outputs import LLMResult
    from langgraph.checkpoint.base import BaseCheckpointSaver

ASKED_MODES: Final = ("tasks", "checkpoints", "debug")  # kept only for a run that asked for them
EVENTS: Final = "events"  # LangChain's own, of everything that runs within the graph; also only when asked for
_HIDDEN: Final = "langsmith:hidden"  # LangGraph's mark of its inner workings
_ALWAYS: Final = ("values", "updates", "messages", "custom", "checkpoints")
NAMESPACE_MARK: Final = "|"
MESSAGES: Final = "messages"
_ABOUT_A_STEP: Final = frozenset({"source", "step"})


@dataclass(frozen=True, slots=True)
class Token:
    """A further piece of a message that a node of the graph itself is writing."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Standing:
    """The graph's state at a checkpoint of its own. Tasks are what would run next, with their interrupts."""

    checkpoint_id: str
    values: dict[str, Any]  # JSON; messages as `engine.wire` writes them
    messages: list[dict[str, Any]]
    next: list[str] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)  # source and step

    @property
    def interrupts(self) -> list[dict[str, Any]]:
        return [one for task in self.tasks for one in task.get("interrupts", ())]


@dataclass(frozen=True, slots=True)
class Part:
    """Something for whoever streams the run. `ns` is empty for the graph itself, else the path to a graph within."""

    mode: str
    data: Any
    ns: str = ""


Piece: TypeAlias = "Token | Standing | Part"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCall:
    """What a run hands to its graph. `command` as on the wire: {"resume", "update", "goto"}, each optional."""

    input: Any = None  # None: go on from the checkpoint
    command: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] | None = None
    interrupt_before: Sequence[str] | str | None = None
    interrupt_after: Sequence[str] | str | None = None
    subgraphs: bool = False
    modes: tuple[str, ...] = ()


class CallCounter(BaseCallbackHandler):
    """Counts model calls and the tokens their providers report, in whatever depth of the graph they are made."""

    def __init__(self) -> None:
        self.model_calls = 0
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.model = ""

    def on_llm_end(self, response: LLMResult, **_run: Any) -> None:
        self.model_calls += 1
        for generation in (one for found in response.generations for one in found[:1]):
            message = getattr(generation, "message", None)
            usage = getattr(message, "usage_metadata", None)
            self.model = str((getattr(message, "response_metadata", None) or {}).get("model_name") or self.model)[:120]
            if usage:
                self.input_tokens = (self.input_tokens or 0) + int(usage.get("input_tokens") or 0)
                self.output_tokens = (self.output_tokens or 0) + int(usage.get("output_tokens") or 0)
                cached = (usage.get("input_token_details") or {}).get("cache_read")
                if cached is not None:
                    self.cached_tokens = (self.cached_tokens or 0) + int(cached)


def with_saver(graph: Any, saver: BaseCheckpointSaver[Any]) -> Any:
    """The graph on this checkpointer, whichever it was compiled with."""
    return graph.copy(update={"checkpointer": saver})


def takes_messages(graph: Any) -> bool:
    """Whether the graph's state has a list of messages that a person's words can go to."""
    return MESSAGES in graph.channels


async def stream(graph: Any, call: GraphCall) -> AsyncGenerator[Piece]:
    """Run the graph to its end or to an interrupt. What its nodes raise comes through.

    Every step is stored by the checkpointer before the next one begins.
    """
    options = {
        "config": dict(call.config),
        "context": call.context,
        "stream_mode": [*_ALWAYS, *(mode for mode in call.modes if mode in ASKED_MODES and mode not in _ALWAYS)],
        "subgraphs": True,
        "durability": "sync",
        "interrupt_before": call.interrupt_before,
        "interrupt_after": call.interrupt_after,
    }
    if EVENTS in call.modes:
        found = _with_events(graph.astream_events(_input(call), version="v2", **options))
    else:
        found = graph.astream(_input(call), **options)
    async with aclosing(found):
        async for ns, mode, data in found:
            for piece in _pieces(NAMESPACE_MARK.join(ns), mode, data, call):
                yield piece


async def _with_events(events: AsyncGenerator[Any]) -> AsyncGenerator[tuple[tuple[str, ...], str, Any]]:
    """LangChain's events, and between them the parts that the graph's own stream would have."""
    async with aclosing(events):
        async for event in events:
            if _HIDDEN in event.get("tags", ()):
                continue
            if event["event"] == "on_chain_stream" and not event.get("parent_ids"):
                yield event["data"]["chunk"]
            else:
                yield (), EVENTS, event


def _input(call: GraphCall) -> Any:
    if call.command is None:
        return call.input
    command = call.command
    goto = command.get("goto")
    update = command.get("update")
    return Command(
        resume=command.get("resume"),
        update=with_messages(update) if isinstance(update, Mapping) else update,
        goto=_goto(goto) if goto is not None else (),
    )


def _goto(value: Any) -> Any:
    from langgraph.types import Send

    if isinstance(value, list):
        return [_goto(one) for one in value]
    return Send(str(value["node"]), value.get("input")) if isinstance(value, Mapping) else str(value)


def with_messages(values: Mapping[str, Any]) -> dict[str, Any]:
    found = values.get(MESSAGES)
    return dict(values) if not isinstance(found, list) else {**values, MESSAGES: [message_of(one) for one in found]}


def message_of(value: Any) -> Any:
    """A stored message as LangChain's object, anything else as it is: the graph's reducer reads it."""
    try:
        return from_wire(value)
    except (WireError, AttributeError):
        return value


def _pieces(ns: str, mode: str, data: Any, call: GraphCall) -> list[Piece]:
    if mode == "checkpoints":
        kept: list[Piece] = [] if ns else [standing_of(data)]
        if mode in call.modes and (call.subgraphs or not ns):
            kept.append(Part(mode, plain(data), ns))
        return kept
    if mode == "messages":
        return _message_pieces(ns, data, call)
    if ns and not call.subgraphs:
        return []
    if mode == "values" and not ns:
        return _interrupt_part(data)  # the state itself comes with its checkpoint
    return [Part(mode, plain(data), ns)]


def _interrupt_part(values: Any) -> list[Piece]:
    found = values.get("__interrupt__") if isinstance(values, Mapping) else None
    return [Part("interrupts", plain(found))] if found else []


def _message_pieces(ns: str, data: Any, call: GraphCall) -> list[Piece]:
    message, metadata = data
    if not isinstance(message, BaseMessage):
        return []
    if ns:
        return [Part("messages", [plain(message), plain(metadata)], ns)] if call.subgraphs else []
    if isinstance(message, AIMessageChunk | AIMessage) and (text := message.text) and message.id:
        return [Token(message.id, str(text))]
    return []


def standing_of(data: Mapping[str, Any]) -> Standing:
    """From LangGraph's `checkpoints` part."""
    tasks = [
        {
            "id": str(task["id"]),
            "name": str(task["name"]),
            "path": plain(task.get("path", ())),
            "error": plain(task.get("error")),
            "interrupts": plain(task.get("interrupts") or ()),
            "checkpoint": None,
            "state": None,
            "result": plain(task.get("result")),
        }
        for task in data["tasks"]
    ]
    found = data["values"] if isinstance(data["values"], Mapping) else {"__root__": data["values"]}
    return Standing(
        checkpoint_id=str(data["config"]["configurable"]["checkpoint_id"]),
        values={str(name): plain(value) for name, value in found.items() if name not in (MESSAGES, "__interrupt__")},
        messages=_messages(found.get(MESSAGES)),
        next=[str(name) for name in data["next"]],
        tasks=tasks,
        metadata={name: plain(value) for name, value in (data.get("metadata") or {}).items() if name in _ABOUT_A_STEP},
    )


async def standing(graph: Any, config: Mapping[str, Any]) -> Standing | None:
    """Where the graph stands on this thread; None before its first checkpoint."""
    found = await graph.aget_state(dict(config))
    if not (found.config or {}).get("configurable", {}).get("checkpoint_id"):
        return None
    tasks = [
        {
            "id": task.id,
            "name": task.name,
            "path": task.path,
            "error": task.error,
            "interrupts": task.interrupts,
            "result": task.result,
        }
        for task in found.tasks
    ]
    return standing_of(
        {
            "config": found.config,
            "values": found.values,
            "next": found.next,
            "tasks": tasks,
            "metadata": found.metadata,
        }
    )


def _messages(found: Any) -> list[dict[str, Any]]:
    written = []
    for message in found if isinstance(found, list | tuple) else ():
        try:
            written.append(to_wire(message))
        except WireError:
            continue
    return written
