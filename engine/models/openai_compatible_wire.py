"""OpenAI's chat completions as JSON: LangChain messages as a request carries them, errors as a server says them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_data_block,
    is_data_content_block,
)

from engine.errors import EngineError
from engine.models.openai_reasoning import reasoning_to_send
from engine.text import clean, clean_json, shorten

MAX_MESSAGE_CHARACTERS: Final = 500  # of what a server says about an error
MAX_CODE_CHARACTERS: Final = 60
_ROLES: Final[Mapping[type[BaseMessage], str]] = {
    HumanMessage: "user",
    SystemMessage: "system",
    AIMessage: "assistant",
    ToolMessage: "tool",
}
# Blocks of other providers and second copies of calls; a server refuses the whole request for one of them.
_LEFT_OUT_BLOCKS: Final = frozenset(
    {"tool_use", "tool_call", "function_call", "thinking", "reasoning", "reasoning_content"}
)


class ServerRefusal(EngineError):
    """The model server answered with an error; `status_code` None: inside an answer that had begun well."""

    def __init__(
        self, status_code: int | None, message: str, *, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        words = shorten(clean(message), MAX_MESSAGE_CHARACTERS)
        super().__init__(f"the model server answered with an error ({status_code or 'no status'}): {words}")
        self.status_code = status_code
        self.body = {"message": words, "code": shorten(clean(code), MAX_CODE_CHARACTERS)}
        self.headers = headers or {}  # for how long the server asks to wait


class UnreadableAnswer(EngineError):
    """The model server's answer is not what its API promises."""


def encode(value: object) -> bytes:
    """The value as JSON. Lone surrogates, huge numbers and deep nesting take a slower way, and never raise."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(clean_json(value), ensure_ascii=False, default=str, skipkeys=True).encode()


def decode(text: bytes) -> dict[str, Any]:
    """Read a JSON object. Raises UnreadableAnswer."""
    try:
        value = orjson.loads(text)
    except ValueError:
        value = _decode_leniently(text)
    if not isinstance(value, dict):
        raise UnreadableAnswer(f"expected a JSON object, got {type(value).__name__}")
    return value


def _decode_leniently(text: bytes) -> object:
    """Some servers stream an emoji as two halves, which strict readers refuse."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableAnswer("the model server's answer is not valid JSON") from None


def request_message(message: BaseMessage) -> dict[str, Any]:
    """One message of a request. Raises TypeError for a kind that chat completions do not know."""
    role = next((role for kind, role in _ROLES.items() if isinstance(message, kind)), None)
    if role is None:
        raise TypeError(f"a message of type {message.type} cannot be sent to a chat model")
    content = message.content
    wire: dict[str, Any] = {"role": role, "content": content if isinstance(content, str) else _blocks(content)}
    if isinstance(message, ToolMessage):
        wire["tool_call_id"] = message.tool_call_id
        return wire
    if message.name:
        wire["name"] = message.name
    if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
        calls = [(one["id"], one["name"], encode(one["args"]).decode()) for one in message.tool_calls]
        calls += [(one["id"], one["name"] or "", one["args"] or "") for one in message.invalid_tool_calls]
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    return wire | reasoning_to_send(message)


def _blocks(content: Iterable[str | dict[str, Any]]) -> list[dict[str, Any]]:
    return [_block(block) for block in content if isinstance(block, str) or block.get("type") not in _LEFT_OUT_BLOCKS]


def _block(block: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return convert_to_openai_data_block(block) if is_data_content_block(block) else block


def raise_error_of(event: Mapping[str, Any], hide: Callable[[str], str]) -> None:
    """Raise ServerRefusal when the object is an error: `{"error": …}`, or vLLM's `{"object": "error", …}`."""
    if event.get("error") or event.get("object") == "error":
        raise ServerRefusal(_status(event), hide(error_message(event)), code=hide(error_code(event)))


def error_message(body: Mapping[str, Any]) -> str:
    """What a server says is wrong, wherever it puts it; "" when it says nothing."""
    error = body.get("error")
    places = (error.get("message") if isinstance(error, Mapping) else error, body.get("message"), body.get("detail"))
    return next((text for place in places if (text := text_or_none(place))), "")


def error_code(body: Mapping[str, Any]) -> str:
    """The server's own word for the error, such as insufficient_quota; "" when it has none."""
    error = body.get("error")
    return text_or_none((error if isinstance(error, Mapping) else body).get("code")) or ""


def _status(event: Mapping[str, Any]) -> int | None:
    error = event.get("error")
    code = count_or_none((error if isinstance(error, Mapping) else event).get("code"))
    return code if code and 400 <= code < 600 else None


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def count_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
