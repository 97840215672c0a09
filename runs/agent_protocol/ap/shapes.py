"""Our rows as the Agent Protocol says them. It has no word for a running run, and keeps messages apart from values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runs.agent_protocol.shapes import run_object
from runs.transcript import from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runs.agents import Choice
    from runs.models import Run

_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_THREAD_FIELDS: Final = ("thread_id", "created_at", "updated_at", "metadata", "status")
CAPABILITIES: Final = {"ap.io.messages": True, "ap.io.streaming": True}
_MESSAGES: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "role": {"type": "string", "enum": sorted(_ROLES.values())},
            "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
            "id": {"type": "string"},
        },
        "required": ["role", "content"],
    },
}
_STATE: Final = {"type": "object", "properties": {"messages": _MESSAGES}, "required": ["messages"]}
_CONFIG: Final = {
    "type": "object",
    "properties": {
        "configurable": {
            "type": "object",
            "properties": {
                "model_name": {"type": "string"},
                "subagent_enabled": {"type": "boolean"},
                "max_concurrent_subagents": {"type": "integer", "minimum": 1},
                "max_total_subagents": {"type": "integer", "minimum": 1},
            },
        }
    },
}


def agent_object(choice: Choice) -> dict[str, Any]:
    return {
        "agent_id": choice.name,
        "name": choice.label,
        "description": choice.description,
        "metadata": {},
        "capabilities": CAPABILITIES,
    }


def agent_schemas(choice: Choice) -> dict[str, Any]:
    return {
        "agent_id": choice.name,
        "input_schema": _STATE,
        "output_schema": _STATE,
        "state_schema": _STATE,
        "config_schema": _CONFIG,
    }


def run_of(run: Run) -> dict[str, Any]:
    whole = {name: value for name, value in run_object(run).items() if name != "assistant_id"}
    status = "pending" if whole["status"] == "running" else whole["status"]
    return {**whole, "agent_id": run.agent, "status": status}


def thread_of(thread: Mapping[str, Any]) -> dict[str, Any]:
    """A thread, from what the LangGraph wire says of it."""
    return {**{name: thread[name] for name in _THREAD_FIELDS}, **state_of(thread["values"])}


def states_of(whole: bytes) -> list[dict[str, Any]]:
    """A thread's history, from what the LangGraph wire says of it."""
    kept = ("checkpoint", "metadata")
    return [{**{name: one[name] for name in kept}, **state_of(one["values"])} for one in from_json(whole)]


def state_of(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values, and the messages that are kept apart from them."""
    others = dict(values or {})
    messages = others.pop("messages", [])
    return {"values": others, "messages": [{"role": _ROLES.get(one["type"], one["type"]), **one} for one in messages]}
