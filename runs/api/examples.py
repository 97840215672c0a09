"""Examples of bodies and answers. A test sends each body and compares each answer's shape."""

from __future__ import annotations

from typing import Any, Final

_LEAD, _CHILD = "0199a7f2-6a0e-7cc2-8f4e-3a1c5f0f9d10", "0199a7f2-7b11-7d01-9c55-5e2f6a7b8c9d"
_THREAD, _CHILD_THREAD = "0199a7f2-69ff-7aa0-8a10-1b2c3d4e5f60", "0199a7f2-7b10-7c00-8b20-2c3d4e5f6071"
_MESSAGE = "0199a7f2-8c22-7e12-ad66-6f3a7b8c9dae"

NEW_THREAD: Final = {"title": "Three note-taking apps"}
THREAD: Final[dict[str, Any]] = {
    "id": _THREAD,
    "title": "Three note-taking apps",
    "status": "busy",
    "last_seq": 12,
    "created_at": "2026-01-05T09:30:00Z",
    "updated_at": "2026-01-05T09:30:04Z",
}
NEW_RUN: Final = {"text": "Compare three note-taking apps.", "options": {"max_total_subagents": 3}}
RUN: Final[dict[str, Any]] = {
    "id": _LEAD,
    "thread_id": _THREAD,
    "owner": "ada",
    "agent": "lead_agent",
    "title": "",
    "parent_id": None,
    "root_id": _LEAD,
    "continues_id": None,
    "status": "success",
    "waiting_for": None,
    "stop_reason": "turn_capped",
    "error_code": None,
    "why": {
        "what": "Stopped by the turn limit: it used all 200 model calls (runs.max_turns), so the answer is what it had"
        " by then.",
        "way_out": "Continue with a higher limit, or ask for less at once.",
        "limit": "200 model calls",
        "layer": "runs.max_turns",
    },
    "model": "gpt",
    "turns": 200,
    "usage": {
        "input_tokens": 812_000,
        "output_tokens": 40_100,
        "cached_tokens": 500_000,
        "total_tokens": 852_100,
        "estimated": False,
    },
    "created_at": "2026-01-05T09:30:00Z",
    "started_at": "2026-01-05T09:30:00Z",
    "ended_at": "2026-01-05T10:02:11Z",
}
RUN_IN_FULL: Final[dict[str, Any]] = {
    **RUN,
    "error": None,
    "cancel_requested": False,
    "cancelled_by": None,
    "attempt": 1,
    "worker": "host:4711",
    "limits": {"max_turns": 200, "max_turns_layer": "runs.max_turns"},
    "options": {"max_total_subagents": 3},
    "unread_messages": 0,
    "actions": ["continue"],
    "continue_with": {"max_turns": 400},
    "children": [
        {
            "id": _CHILD,
            "thread_id": _CHILD_THREAD,
            "agent": "general-purpose",
            "title": "Read the reviews",
            "status": "success",
        }
    ],
}
QUEUED: Final[dict[str, Any]] = {
    "status": "pending",
    "stop_reason": None,
    "why": {
        "what": "A worker takes it in a moment. Place 1 in line.",
        "way_out": "Nothing needs to be done.",
        "limit": None,
        "layer": None,
    },
    "model": "",
    "turns": 0,
    "usage": None,
    "started_at": None,
    "ended_at": None,
    "attempt": 0,
    "worker": None,
    "limits": None,
    "actions": ["cancel", "steer"],
    "continue_with": {},
    "children": [],
}
CANCELLED: Final = {
    "already_ended": False,
    "stopped": [
        {"run_id": _LEAD, "kind": "answer", "agent": "lead_agent", "title": ""},
        {"run_id": _CHILD, "kind": "task", "agent": "general-purpose", "title": "Read the reviews"},
    ],
}
STEER: Final = {"text": "Look at the prices too."}
STEERED: Final = {"message_id": _MESSAGE}
CONTINUE: Final = {"limits": {"max_turns": 400}}
EVENTS: Final = {
    "events": [
        {
            "seq": 1,
            "type": "run.queued",
            "at": "2026-01-05T09:30:00Z",
            "run_id": _LEAD,
            "data": {"agent": "lead_agent"},
        },
        {
            "seq": 2,
            "type": "message",
            "at": "2026-01-05T09:30:00Z",
            "run_id": _LEAD,
            "data": {"type": "human", "id": _MESSAGE, "content": "Compare three note-taking apps."},
        },
    ],
    "next": 2,
    "more": False,
}


def page(result: dict[str, Any]) -> dict[str, Any]:
    return {"next": None, "previous": None, "results": [result]}
