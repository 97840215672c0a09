"""The messages of a run request, LangChain's or OpenAI's spelling, as wire messages. Bad input names its field."""

from __future__ import annotations

from typing import Any

import orjson

from runs.errors import BadInput
from runs.merging import REMOVE
from runs.models import new_id
from runs.services import MAX_TEXT_LENGTH
from runs.transcript import WireMessage, text_of

MAX_MESSAGES = 5_000  # of one request; a conversation that is handed over whole has hundreds
_NAME_LENGTH = 200
_OWN = frozenset(
    {"id", "type", "role", "content", "name", "additional_kwargs", "response_metadata", "example", "tool_calls"}
)
_TYPES = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "system": "system", "tool": "tool"}


def wire_messages(value: Any, path: str = "input.messages") -> list[WireMessage]:
    """Check the messages a request hands in; the last one must say something."""
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list) or not value:
        raise BadInput(path, "expected a list with at least one message")
    if len(value) > MAX_MESSAGES:
        raise BadInput(path, f"there are {len(value):,} messages; at most {MAX_MESSAGES:,} are allowed")
    messages = [_message(one, f"{path}[{place}]") for place, one in enumerate(value)]
    if not text_of(messages[-1]).strip():
        raise BadInput(f"{path}[{len(messages) - 1}].content", "the message is empty")
    return messages


def state_messages(value: Any, path: str = "values.messages") -> list[WireMessage]:
    """Messages that change a state: as those of a run, or {"type": "remove", "id"}; none has to say anything."""
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list):
        raise BadInput(path, "expected a list of messages")
    if len(value) > MAX_MESSAGES:
        raise BadInput(path, f"there are {len(value):,} messages; at most {MAX_MESSAGES:,} are allowed")
    return [_change(one, f"{path}[{place}]") for place, one in enumerate(value)]


def _change(value: Any, path: str) -> WireMessage:
    if not isinstance(value, dict) or value.get("type", value.get("role")) != REMOVE:
        return _message(value, path)
    wanted = _name(value, "id", path)
    if not wanted:
        raise BadInput(f"{path}.id", "this field is required")
    return {"type": REMOVE, "id": wanted}


def _message(value: Any, path: str) -> WireMessage:
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    if not isinstance(value, dict):
        raise BadInput(path, "expected a message object")
    field = "type" if value.get("type") is not None else "role"
    said = value.get(field)
    kind = _TYPES.get(said) if isinstance(said, str) else None
    if kind is None:
        raise BadInput(f"{path}.{field}", f"expected one of {', '.join(_TYPES)}")
    message = {
        "id": _name(value, "id", path) or str(new_id()),
        "type": kind,
        "content": _content(value.get("content"), f"{path}.content"),
    }
    if name := _name(value, "name", path):
        message["name"] = name
    if kind == "human" and (more := _further_fields(value, path)):
        message["additional_kwargs"] = more
    if kind == "ai" and value.get("tool_calls") is not None:
        message["tool_calls"] = _tool_calls(value["tool_calls"], f"{path}.tool_calls")
    if kind == "tool":
        message |= _tool_fields(value, path)
    return message


def _further_fields(value: dict[str, Any], path: str) -> dict[str, Any]:
    """What a program marks a message with for itself, at the top as LangChain takes it, or where LangChain keeps it."""
    kept = value.get("additional_kwargs")
    more = {**(kept if isinstance(kept, dict) else {}), **{name: value[name] for name in value if name not in _OWN}}
    if len(orjson.dumps(more)) > MAX_TEXT_LENGTH:
        raise BadInput(path, f"its further fields have more than {MAX_TEXT_LENGTH:,} bytes")
    return more


def _name(value: dict[str, Any], field: str, path: str) -> str:
    name = value.get(field)
    if name is None:
        return ""
    if not isinstance(name, str) or len(name) > _NAME_LENGTH:
        raise BadInput(f"{path}.{field}", f"expected text of at most {_NAME_LENGTH} characters")
    return name


def _content(content: Any, path: str) -> Any:
    if not isinstance(content, str | list):
        raise BadInput(path, "expected text or a list of content blocks")
    if isinstance(content, list):
        for place, block in enumerate(content):
            if not isinstance(block, str | dict):
                raise BadInput(f"{path}[{place}]", "expected text or a content block")
            if isinstance(block, dict) and not isinstance(block.get("text", ""), str):
                raise BadInput(f"{path}[{place}].text", "expected text")
    size = len(content) if isinstance(content, str) else len(orjson.dumps(content))
    if size > MAX_TEXT_LENGTH:
        raise BadInput(path, f"the message has {size:,} characters; at most {MAX_TEXT_LENGTH:,} are allowed")
    return content


def _tool_calls(value: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise BadInput(path, "expected a list of tool calls")
    return [_tool_call(call, f"{path}[{place}]") for place, call in enumerate(value)]


def _tool_call(call: Any, path: str) -> dict[str, Any]:
    """LangChain's {"id", "name", "args"}, or OpenAI's {"id", "function": {"name", "arguments"}}."""
    if not isinstance(call, dict):
        raise BadInput(path, "expected a tool call object")
    function = call.get("function")
    if isinstance(function, dict):
        call = {"id": call.get("id"), "name": function.get("name"), "args": _arguments(function.get("arguments"))}
    arguments = call.get("args")
    if arguments is not None and not isinstance(arguments, dict):
        raise BadInput(f"{path}.args", "expected an object")
    name = _name(call, "name", path)
    if not name:
        raise BadInput(f"{path}.name", "this field is required")
    if len(orjson.dumps(arguments)) > MAX_TEXT_LENGTH:
        raise BadInput(f"{path}.args", f"at most {MAX_TEXT_LENGTH:,} bytes are allowed")
    return {"id": _name(call, "id", path) or str(new_id()), "name": name, "args": arguments or {}}


def _arguments(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value or "{}")
    except orjson.JSONDecodeError:
        return value


def _tool_fields(value: dict[str, Any], path: str) -> dict[str, Any]:
    call_id = _name(value, "tool_call_id", path)
    if not call_id:
        raise BadInput(f"{path}.tool_call_id", "this field is required")
    status = value.get("status", "success")
    if status not in ("success", "error"):
        raise BadInput(f"{path}.status", "expected one of success, error")
    return {"tool_call_id": call_id, "status": status}
