"""What the wire says of how an agent is built: the same for all, a model that may call tools until it answers."""

from __future__ import annotations

from typing import Any, Final

_MESSAGES: Final[dict[str, Any]] = {
    "title": "Messages",
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "role": {"enum": ["user", "human", "assistant", "ai", "system", "tool"]},
            "content": {"anyOf": [{"type": "string"}, {"type": "array"}]},
        },
        "required": ["role", "content"],
    },
}
_STATE: Final[dict[str, Any]] = {"type": "object", "properties": {"messages": _MESSAGES}}
_OPTIONS: Final[dict[str, Any]] = {
    "title": "Options",
    "type": "object",
    "properties": {
        "subagent_enabled": {"type": "boolean", "default": True},
        "thinking_enabled": {"type": "boolean", "default": True},
        "max_concurrent_subagents": {"type": "integer", "minimum": 1},
        "max_total_subagents": {"type": "integer", "minimum": 1},
        "model_name": {"type": "string"},
        "agent_name": {"type": "string"},
    },
}
GRAPH: Final[dict[str, Any]] = {
    "nodes": [
        {"id": "__start__", "type": "runnable", "data": {"name": "__start__"}},
        {"id": "model", "type": "runnable", "data": {"name": "model"}},
        {"id": "tools", "type": "runnable", "data": {"name": "tools"}},
        {"id": "__end__"},
    ],
    "edges": [
        {"source": "__start__", "target": "model"},
        {"source": "model", "target": "tools", "conditional": True},
        {"source": "model", "target": "__end__", "conditional": True},
        {"source": "tools", "target": "model"},
    ],
}
SCHEMAS: Final[dict[str, Any]] = {
    "input_schema": {**_STATE, "title": "Input", "required": ["messages"]},
    "output_schema": {**_STATE, "title": "Output"},
    "state_schema": {**_STATE, "title": "State"},
    "config_schema": {"type": "object", "properties": {"configurable": _OPTIONS}},
    "context_schema": _OPTIONS,
}
