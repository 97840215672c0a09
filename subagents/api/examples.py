"""Examples of bodies and answers. A test sends each body and compares each answer's shape."""

from __future__ import annotations

from typing import Any, Final

DOCUMENT: Final[dict[str, Any]] = {
    "name": "researcher",
    "display_name": "Researcher",
    "description": "Finds sources on the web and reports them with links. Pick it for open questions.",
    "system_prompt": "You research one question. Name every source.",
    "model": "inherit",
    "tools": ["web_search", "web_fetch"],
    "disallowed_tools": [],
    "skills": None,
    "max_turns": 40,
    "timeout_seconds": None,
    "token_budget": {"max_tokens": 500_000},
    "enabled": True,
}
CHANGES: Final = {"max_turns": 60, "enabled": False}
EFFECTIVE: Final[dict[str, Any]] = {
    "model": "inherit",
    "tools": ["web_search", "web_fetch"],
    "disallowed_tools": ["task"],
    "skills": None,
    "max_turns": 40,
    "timeout_seconds": 1800,
    "token_budget": {"enabled": True, "max_tokens": 500_000, "warn_threshold": 0.7},
}
SUBAGENT: Final[dict[str, Any]] = {
    "name": "researcher",
    "source": "managed",
    "state": "active",
    "reason": None,
    "warnings": [],
    "problems": [],
    "conflict": False,
    "shadowed_by": None,
    "editable": True,
    "overridden": [],
    "version": "1",
    "updated_at": "2026-01-05T09:30:00Z",
    "last_used_at": "2026-01-06T08:00:00Z",
    "recent_runs": 12,
    "definition": DOCUMENT,
    "effective": EFFECTIVE,
}
LAYERS: Final = {
    "max_turns": {
        "value": 40,
        "layer": "managed",
        "layers": [{"layer": "managed", "value": 40}, {"layer": "default", "value": 50}],
    }
}
AGENT_DOCUMENT: Final[dict[str, Any]] = {
    "name": "analyst",
    "display_name": "Analyst",
    "description": "Answers questions about figures.",
    "system_prompt": "You answer with figures and say where they come from.",
    "model": "inherit",
    "tools": None,
    "skills": None,
    "subagent_enabled": True,
    "allowed_subagents": ["researcher"],
    "enabled": True,
}
AGENT_CHANGES: Final = {"allowed_subagents": None}
AGENT: Final[dict[str, Any]] = {
    "name": "analyst",
    "state": "active",
    "reason": None,
    "warnings": [],
    "problems": [],
    "editable": True,
    "version": "1",
    "updated_at": "2026-01-05T09:30:00Z",
    "last_used_at": "2026-01-06T08:00:00Z",
    "recent_runs": 12,
    "definition": AGENT_DOCUMENT,
    "resolved_subagents": ["researcher"],
    "missing_subagents": [],
}
REMOTE_DOCUMENT: Final[dict[str, Any]] = {
    "name": "coder",
    "display_name": "Coder",
    "description": "Writes and reviews code on the machines of the platform team.",
    "graph_id": "coder",
    "url": "https://agents.example.com",
    "headers": {"Authorization": "••••1f3a"},
    "use_env_key": "auto",
    "webhook": None,
    "update_strategy": "interrupt",
    "notify_parent": True,
    "mode": "isolated",
    "enabled": True,
}
REMOTE_SENT: Final[dict[str, Any]] = {**REMOTE_DOCUMENT, "headers": {"Authorization": "Bearer 7d1c90aa1f3a"}}
REMOTE_CHANGES: Final = {"update_strategy": "enqueue", "enabled": False}
CONTACT: Final = {"at": "2026-01-06T08:00:00Z", "fault": "refused", "detail": "agents.example.com refuses connections."}
REMOTE: Final[dict[str, Any]] = {
    "name": "coder",
    "source": "managed",
    "state": "active",
    "reason": None,
    "warnings": [],
    "problems": [],
    "conflict": False,
    "shadowed_by": None,
    "editable": True,
    "version": "1",
    "updated_at": "2026-01-05T09:30:00Z",
    "definition": REMOTE_DOCUMENT,
    "last_contact": CONTACT,
}
BULK: Final = {"action": "disable", "names": ["researcher", "bash"]}
BULK_ANSWER: Final = {
    "results": [
        {"name": "researcher", "result": "changed", "problem": None},
        {
            "name": "bash",
            "result": "refused",
            "problem": {
                "type": "urn:problem:read_only",
                "title": "This entry cannot be changed here",
                "status": 409,
                "detail": "bash cannot be changed here (Built-in). Duplicate it as a managed one under another name.",
                "code": "read_only",
                "request_id": "0199a7f2-6a0e-7cc2-8f4e-3a1c5f0f9d10",
                "source": "builtin",
            },
        },
    ]
}
REFERENCES: Final = {"agents": [{"name": "analyst", "display_name": "Analyst"}]}


def version(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": 1,
        "version": "1",
        "action": "created",
        "author": "ada",
        "created_at": "2026-01-05T09:30:00Z",
        "document": document,
    }


def page(result: dict[str, Any]) -> dict[str, Any]:
    return {"count": 1, "page": 1, "pages": 1, "next": None, "previous": None, "results": [result]}
