"""Reading and rewriting a model's reply before it is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from engine.delegation.facts import not_answered
from engine.delegation.names import TASK
from engine.middleware.names import PLATFORM_NOTE
from engine.ports import RunContext

if TYPE_CHECKING:
    from langchain_core.messages.tool import ToolCall


class Guard(AgentMiddleware[AgentState[Any], RunContext, Any]):
    """Base of all our middleware: one rule over the requests and replies, or the tool calls, of every run."""


Request: TypeAlias = ModelRequest[RunContext]
Response: TypeAlias = ModelResponse[Any]
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta"})
_CALL_COPIES = frozenset({"tool_calls", "function_call"})


def context_of(request: Request) -> RunContext:
    return request.runtime.context


def reply_of(response: Response) -> AIMessage | None:
    """The reply among the messages of a model step; refusals that guards added stand after it."""
    return next((message for message in response.result if isinstance(message, AIMessage)), None)


def replace_reply(response: Response, reply: AIMessage, *, results: Sequence[ToolMessage] = ()) -> Response:
    """The same step with another reply and further results; those there stay while their call does."""
    ids = {call["id"] for call in reply.tool_calls}
    kept = [one for one in response.result if isinstance(one, ToolMessage) and one.tool_call_id in ids]
    return ModelResponse(result=[reply, *kept, *results], structured_response=response.structured_response)


def with_calls(reply: AIMessage, calls: Sequence[ToolCall]) -> AIMessage:
    """The reply with these calls only; the provider's own copies of them go, so that none contradicts."""
    content = reply.content
    if isinstance(content, list):
        content = [block for block in content if not (isinstance(block, dict) and block.get("type") in _CALL_BLOCKS)]
    extra = {name: value for name, value in reply.additional_kwargs.items() if name not in _CALL_COPIES}
    return reply.model_copy(
        update={
            "content": content,
            "tool_calls": list(calls),
            "invalid_tool_calls": [],
            "additional_kwargs": extra,
        }
    )


def without_calls(reply: AIMessage) -> AIMessage:
    """The reply as if the model had stopped there by itself."""
    metadata = dict(reply.response_metadata)
    for name in ("finish_reason", "stop_reason"):
        if name in metadata:
            metadata[name] = "stop"
    return with_calls(reply, ()).model_copy(update={"response_metadata": metadata})


def with_more_text(reply: AIMessage, text: str) -> AIMessage:
    """The reply with a further piece of text at its end, whatever its content is made of."""
    content = reply.content
    more = content + text if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return reply.model_copy(update={"content": more})


def open_calls(response: Response, reply: AIMessage) -> list[ToolCall]:
    """The calls of the reply that no guard has answered yet."""
    answered = {message.tool_call_id for message in response.result if isinstance(message, ToolMessage)}
    return [call for call in reply.tool_calls if call["id"] not in answered]


def refusal(call: ToolCall, sentence: str) -> ToolMessage:
    """The result of a call that was not run. One of `task` carries the facts of a delegation like any other."""
    return ToolMessage(
        content=sentence,
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="error",
        artifact=not_answered(sentence) if call["name"] == TASK else None,
        id=str(uuid4()),
    )


def with_note(request: Request, note: str) -> Request:
    """Tell the model something in this request only. A message of role user at the very end: providers refuse
    a second system message, and the history repair keeps calls and results together before it."""
    words = HumanMessage(content=f"{PLATFORM_NOTE} {note}")
    return request.override(messages=[*request.messages, words])
