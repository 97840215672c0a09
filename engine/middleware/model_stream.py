"""The model call itself: streamed, its pieces handed on as they come, its end and its arguments checked.

Stands innermost and makes the call instead of LangChain's own node, for three reasons. LangChain repairs
cut-off JSON of streamed arguments in silence, so that half a call would run; it takes a stream that was
closed in the middle for a finished answer; and its callbacks cost several times what handing on a piece of
text does.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import ToolCall, ToolCallChunk, invalid_tool_call, tool_call

from engine.errors import ModelSilent, StreamCut, within_answer
from engine.middleware.names import WRITTEN_BY
from engine.middleware.reply import Guard
from engine.models.gate import ModelGate
from engine.text import clean

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from langchain_core.runnables import Runnable

    from engine.middleware.reply import Handler, Request, Response

MAX_BINDINGS: Final = 64
_FINISH_KEYS: Final = ("finish_reason", "stop_reason", "done_reason", "status")
_ALWAYS_SAY_FINISH: Final = (
    "langchain_openai",
    "langchain_anthropic",
    "langchain_ollama",
    "langchain_google_genai",
)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of the reply being written; `message_id` is that of the stored reply.

    `restarts`: the reply is written anew, so what was handed on of it before is no part of it.
    """

    message_id: str
    text: str
    restarts: bool = False


class ModelStreamMiddleware(Guard):
    """Stream one reply through the model's gate. Raises what the last attempt raised."""

    def __init__(self, gate: ModelGate | None = None) -> None:
        super().__init__()
        self._gate = gate or ModelGate()
        self._bindings: OrderedDict[tuple[int, ...], tuple[Sequence[Any], Runnable[Any, Any]]] = OrderedDict()

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        messages: list[BaseMessage] = list(request.messages)
        if request.system_message:
            messages.insert(0, request.system_message)
        reply_id = str(uuid4())
        said = False  # by an attempt before

        async def attempt() -> AIMessage:
            restarts = said

            def hand_on(text: str) -> None:
                nonlocal said, restarts
                request.runtime.stream_writer(TextDelta(reply_id, clean(text), restarts))
                said, restarts = True, False

            return await read_reply(self._bound(request), messages, gate=self._gate, on_text=hand_on)

        reply = await self._gate.call(attempt, pause=request.runtime.context.pause)
        changes: dict[str, Any] = {"id": reply_id}
        if self._gate.name:
            changes["response_metadata"] = {**reply.response_metadata, WRITTEN_BY: self._gate.name}
        return ModelResponse(result=[reply.model_copy(update=changes)])

    def _bound(self, request: Request) -> Runnable[Any, Any]:
        """The model with the offered tools, kept: describing them costs more than all guards together."""
        settings = dict(request.model_settings)
        if request.tools and request.tool_choice is not None:
            settings["tool_choice"] = request.tool_choice
        if settings:
            return (
                request.model.bind_tools(request.tools, **settings) if request.tools else request.model.bind(**settings)
            )
        key = (id(request.model), *map(id, request.tools))
        if key in self._bindings:
            self._bindings.move_to_end(key)
            return self._bindings[key][1]
        bound: Runnable[Any, Any] = request.model.bind_tools(request.tools) if request.tools else request.model
        # The model and the tools are kept with the entry: an id is only theirs while they live.
        self._bindings[key] = ((request.model, *request.tools), bound)
        if len(self._bindings) > MAX_BINDINGS:
            self._bindings.popitem(last=False)
        return bound


async def read_reply(
    bound: Runnable[Any, Any],
    messages: list[BaseMessage],
    *,
    gate: ModelGate,
    on_text: Callable[[str], None] | None = None,
) -> AIMessage:
    """One whole answer of a model, or of what was bound of it; `on_text` gets each piece of text as it comes.

    Raises StreamCut when it ends without the model having finished, ModelSilent when nothing comes for too long, and
    whatever the call itself raises.
    """
    chunks = []
    async with aclosing(_chunks(bound, messages, gate)) as stream:
        async for chunk in stream:
            text = str(chunk.text)
            if text and on_text:
                on_text(text)
            chunks.append(chunk)
    return _joined(chunks, bound)


async def _chunks(
    bound: Runnable[Any, Any], messages: list[BaseMessage], gate: ModelGate
) -> AsyncGenerator[AIMessage, None]:
    begun = False
    stream: Any = bound.astream(messages)
    try:
        async with aclosing(stream):
            while True:
                seconds = gate.silence_seconds if begun else gate.first_silence_seconds
                chunk = await _next(stream, seconds, begun=begun)
                if chunk is None:
                    return
                begun = True
                yield chunk
    except ValueError as error:
        # LangChain's own words for a stream without a single piece in it; there is no class to catch.
        if str(error).startswith("No generation"):
            raise StreamCut("the model's answer was empty") from error
        raise
    except Exception as error:
        meant = within_answer(error, gate.silence_seconds) if begun else error
        if meant is error:
            raise
        raise meant from error


async def _next(stream: AsyncIterator[AIMessage], seconds: float, *, begun: bool) -> AIMessage | None:
    """The next piece, None at the end. Raises ModelSilent."""
    try:
        async with asyncio.timeout(seconds) as patience:
            return await anext(stream, None)
    except TimeoutError as error:
        if not patience.expired():
            raise
        raise ModelSilent(seconds, begun=begun) from error


def _joined(chunks: Sequence[AIMessage], bound: Runnable[Any, Any]) -> AIMessage:
    if not chunks:
        raise StreamCut("the model's answer was empty")
    first, *others = chunks
    if not isinstance(first, AIMessageChunk):
        return first
    whole = add_ai_message_chunks(first, *(chunk for chunk in others if isinstance(chunk, AIMessageChunk)))
    if _must_say_finish(getattr(bound, "bound", bound)) and not any(
        whole.response_metadata.get(key) for key in _FINISH_KEYS
    ):
        raise StreamCut("the model's answer was closed before it was finished")
    reply = message_chunk_to_message(whole)
    assert isinstance(reply, AIMessage)
    return with_strict_arguments(reply, whole.tool_call_chunks)


def _must_say_finish(model: object) -> bool:
    return any(base.__module__.startswith(_ALWAYS_SAY_FINISH) for base in type(model).__mro__)


def with_strict_arguments(reply: AIMessage, raw_calls: Sequence[ToolCallChunk]) -> AIMessage:
    if not raw_calls:
        return reply
    calls: list[ToolCall] = []
    invalid = []
    for raw in raw_calls:
        arguments, problem = parse_arguments(raw["args"])
        if arguments is None:
            invalid.append(invalid_tool_call(name=raw["name"], args=raw["args"], id=raw["id"], error=problem))
        else:
            calls.append(tool_call(name=raw["name"] or "", args=dict(arguments), id=raw["id"]))
    return reply.model_copy(update={"tool_calls": calls, "invalid_tool_calls": invalid})


def parse_arguments(text: str | None) -> tuple[Mapping[str, Any] | None, str]:
    """A call's arguments, or None and what is wrong with them. Nothing at all and `null` are no arguments."""
    if text is None or text.strip() in ("", "null"):
        return {}, ""
    try:
        arguments = json.loads(text, strict=False)
    except RecursionError:
        return None, "nested too deeply"
    except ValueError as error:
        return None, str(error)
    if not isinstance(arguments, dict):
        return None, f"expected a JSON object, got {type(arguments).__name__}"
    return arguments, ""
