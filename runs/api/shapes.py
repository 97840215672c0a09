"""Threads, runs and events as the API shows them: plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from runs import raising
from runs.continuing import may_continue
from runs.explain import explain
from runs.standing import explain_now
from runs.statuses import ACTIVE, ENDED

if TYPE_CHECKING:
    from runs.explain import Explanation
    from runs.log import LogRow
    from runs.models import Run, Thread
    from runs.services import Stopped


def thread(row: Thread) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "title": row.title,
        "status": row.status,
        "last_seq": row.last_seq,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def run(row: Run) -> dict[str, Any]:
    """What lists show. `why` is said of runs that have ended; `run_in_full` says it of every run."""
    return {
        "id": str(row.pk),
        "thread_id": str(row.thread_id),
        "owner": row.thread.owner.get_username(),
        "agent": row.agent,
        "title": row.title,
        "parent_id": _id(row.parent_id),
        "root_id": str(row.root_id),
        "continues_id": _id(row.continues_id),
        "status": row.status,
        "waiting_for": row.waiting_for or None,
        "stop_reason": row.stop_reason or None,
        "error_code": row.error_code or None,
        "why": _why(explain(row) if row.status in ENDED else None),
        "model": row.model,
        "turns": row.model_calls,
        "usage": _usage(row),
        "created_at": row.created_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }


def run_in_full(row: Run) -> dict[str, Any]:
    children = row.children.order_by("created_at", "pk").only("id", "thread_id", "agent", "title", "status")
    return {
        **run(row),
        "why": _why(explain_now(row)),
        "error": row.error or None,
        "cancel_requested": bool(row.cancel_requested),
        "cancelled_by": row.cancelled_by or None,
        "attempt": row.attempt,
        "worker": row.worker or None,
        "limits": row.definition.get("limits") or None,
        "options": row.options,
        "unread_messages": len(row.steers),
        "actions": _actions(row),
        "continue_with": raising.offered(status=row.status, stop_reason=row.stop_reason, detail=row.stop_detail),
        "children": [
            {
                "id": str(child.pk),
                "thread_id": str(child.thread_id),
                "agent": child.agent,
                "title": child.title,
                "status": child.status,
            }
            for child in children
        ],
    }


def _actions(row: Run) -> list[str]:
    """What can be done about it at this moment."""
    if may_continue(row):
        return ["continue"]
    if row.status not in ACTIVE:
        return []
    deaf = row.cancel_requested or row.queue_id is None
    return ["cancel"] if deaf else ["cancel", "steer"]


def _why(explanation: Explanation | None) -> dict[str, Any] | None:
    if explanation is None:
        return None
    return {
        "what": explanation.what,
        "way_out": explanation.way_out,
        "limit": explanation.limit or None,
        "layer": explanation.layer or None,
    }


def _usage(row: Run) -> dict[str, Any] | None:
    """None when nothing was reported, which is not zero."""
    if row.total_tokens is None:
        return None
    return {
        "input_tokens": row.input_tokens or 0,
        "output_tokens": row.output_tokens or 0,
        "cached_tokens": row.cached_tokens,
        "total_tokens": row.total_tokens,
        "estimated": row.usage_estimated,
    }


def _id(value: object) -> str | None:
    return None if value is None else str(value)


def stopped(one: Stopped) -> dict[str, Any]:
    return {"run_id": str(one.run_id), "kind": one.kind, "agent": one.agent, "title": one.title}


def event(row: LogRow) -> dict[str, Any]:
    return {"seq": row.seq, "type": row.type, "at": row.at, "run_id": str(row.run_id), "data": orjson.loads(row.data)}
