"""Messages as stored JSON and back. A stored row is all that a later attempt or a screen gets to see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from engine.ports import Summary
from engine.text import clean, clean_json, shorten

MAX_METADATA_CHARACTERS: Final = 200
_TYPES: Final[Mapping[str, type[BaseMessage]]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "tool": ToolMessage,
    "system": SystemMessage,
}
# What later requests or readers need; providers put whole request echoes and log probabilities beside it.
_KEPT_METADATA: Final = (
    "finish_reason",
    "stop_reason",
    "model_name",
    "model_provider",
    "output_version",
    "usage_estimated",
    "model_entry",
)
SUMMARY: Final = "summary"
_SECOND_COPIES: Final = frozenset({"tool_calls", "function_call"})  # of what stands in `tool_calls` already


class WireError(ValueError):
    """A stored message that cannot be read; its sentence names the field."""


def to_wire(message: BaseMessage) -> dict[str, Any]:
    """Give the message as JSON values with clean text; fields that say nothing are left out.

    {"type": "human"|"ai"|"tool"|"system", "id", "content": text or content blocks, "name",
    "tool_calls": [{"id", "name", "args"}], "usage_metadata", "response_metadata", "additional_kwargs",
    "tool_call_id", "status": "success"|"error", "artifact"}. Raises WireError for another kind of message.
    """
    kind = next((name for name, cls in _TYPES.items() if isinstance(message, cls)), None)
    if kind is None:
        raise WireError(f"a message of type {message.type} is never stored")
    wire: dict[str, Any] = {
        "type": kind,
        "id": _json(message.id),
        "content": _json(message.content),
        "name": _json(message.name),
    }
    if isinstance(message, HumanMessage):
        wire["additional_kwargs"] = _json(message.additional_kwargs)  # fields that a program put there for itself
    if isinstance(message, AIMessage):
        wire |= _ai_fields(message)
    if isinstance(message, ToolMessage):
        artifact = message.artifact if isinstance(message.artifact, dict) else None
        wire |= {
            "tool_call_id": clean(message.tool_call_id),
            "status": message.status,
            "artifact": _json(artifact),
            "additional_kwargs": _json(message.additional_kwargs),
        }
    return {field: value for field, value in wire.items() if field == "content" or value not in (None, "", [], {})}


def from_wire(wire: Mapping[str, Any]) -> BaseMessage:
    """Read what `to_wire` gave. Raises WireError for a row of another shape."""
    cls = _TYPES.get(str(wire.get("type")))
    if cls is None:
        raise WireError(f"type: expected one of {', '.join(_TYPES)}, got {wire.get('type')!r:.80}")
    fields: dict[str, Any] = {
        "content": wire.get("content") or "",
        "id": wire.get("id"),
        "name": wire.get("name"),
    }
    if cls is HumanMessage:
        fields["additional_kwargs"] = wire.get("additional_kwargs") or {}
    if cls is AIMessage:
        fields |= _ai_arguments(wire)
    if cls is ToolMessage:
        fields |= {
            "tool_call_id": wire.get("tool_call_id") or "",
            "status": wire.get("status") or "success",
            "artifact": wire.get("artifact"),
            "additional_kwargs": wire.get("additional_kwargs") or {},
        }
    try:
        return cls(**fields)
    except (ValueError, TypeError, KeyError) as error:
        raise WireError(f"a stored {wire['type']} message does not have the right shape") from error


def summary_to_wire(summary: Summary, message_id: str) -> dict[str, Any]:
    """A summary as the row of the transcript that says it was made here.

    {"type": "system", "name": "summary", "id", "content", "summary": {"covered", "seen"}, "usage_metadata",
    "response_metadata": {"model_name"}}. Readers of the conversation pass it over.
    """
    usage = summary.usage
    counts = {
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "total_tokens": usage.total_tokens if usage else None,
    }
    wire: dict[str, Any] = {
        "type": "system",
        "name": SUMMARY,
        "id": message_id,
        "content": clean(summary.text),
        "summary": {"covered": summary.covered, "seen": summary.seen},
        "usage_metadata": {name: count for name, count in counts.items() if count is not None},
        "response_metadata": {"model_name": clean(summary.model)} if summary.model else {},
    }
    return {name: value for name, value in wire.items() if name == "content" or value}


def summary_from_wire(wire: Mapping[str, Any]) -> Summary | None:
    """The summary a row of the transcript holds; None for every other row."""
    places = wire.get("summary")
    if wire.get("type") != "system" or not isinstance(places, Mapping):
        return None
    covered, seen = places.get("covered"), places.get("seen")
    if not isinstance(covered, int) or not isinstance(seen, int) or not 0 <= covered <= seen:
        return None
    model = (wire.get("response_metadata") or {}).get("model_name", "")
    return Summary(text=str(wire.get("content") or ""), covered=covered, seen=seen, model=str(model))


def _ai_fields(message: AIMessage) -> dict[str, Any]:
    extra = {name: value for name, value in message.additional_kwargs.items() if name not in _SECOND_COPIES}
    return {
        "tool_calls": [
            {"id": clean(call["id"] or ""), "name": clean(call["name"]), "args": _json(call["args"])}
            for call in message.tool_calls
        ],
        "usage_metadata": _json(message.usage_metadata),
        "response_metadata": {
            name: _bounded(value)
            for name in _KEPT_METADATA
            if (value := message.response_metadata.get(name)) is not None
        },
        "additional_kwargs": _json(extra),
    }


def _ai_arguments(wire: Mapping[str, Any]) -> dict[str, Any]:
    calls = wire.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise WireError("tool_calls: expected a list of calls")
    return {
        "tool_calls": [
            {
                "type": "tool_call",
                "id": call.get("id"),
                "name": call.get("name"),
                "args": call.get("args") or {},
            }
            for call in calls
        ],
        "usage_metadata": wire.get("usage_metadata"),
        "response_metadata": wire.get("response_metadata") or {},
        "additional_kwargs": wire.get("additional_kwargs") or {},
    }


def _bounded(value: object) -> str | int | bool:
    return value if isinstance(value, bool | int) else shorten(clean(str(value)), MAX_METADATA_CHARACTERS)


def _json(value: object) -> Any:
    """The value with nothing in it that JSON cannot say: bytes and objects become their text."""
    if value is None or isinstance(value, str):
        return clean(value) if value else value
    return json.loads(json.dumps(clean_json(value), default=str, skipkeys=True))
