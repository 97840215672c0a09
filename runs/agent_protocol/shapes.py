"""Our rows as the objects of the wire. Facts: the reference server's recorded answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from django.utils import timezone
from starlette.responses import Response

from runs.assistant_ids import assistant_id
from runs.explain import why
from runs.graphs import state as graph_state
from runs.statuses import TO_LANGGRAPH, RunStatus, ThreadStatus
from runs.transcript import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runs.models import Run, Thread

STARTED_AT = timezone.now().isoformat()  # of this process: what the wire says of what no one made


def _bytes(value: Any) -> bytes:
    """JSON of rows; what no encoder takes, which only a row from elsewhere holds, is replaced."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return to_json(value).encode()


def json_response(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    content = body if isinstance(body, bytes) else _bytes(body)
    return Response(content, status_code=status, headers=headers, media_type="application/json")


def thread_object(thread: Thread, values: bytes | None, error: dict[str, str] | None = None) -> bytes:
    """A thread; `values` is its state as JSON, None before the first message."""
    return joined_json(thread_fields(thread, error), {"values": values or b"null"})


def thread_fields(thread: Thread, error: dict[str, str] | None = None) -> dict[str, Any]:
    """A thread without its values."""
    return {
        "thread_id": str(thread.pk),
        "created_at": thread.created_at.isoformat(),
        "updated_at": thread.updated_at.isoformat(),
        "state_updated_at": thread.updated_at.isoformat(),
        "metadata": thread.metadata,
        "status": thread.status,
        "config": {},
        "interrupts": graph_state.interrupts_of(thread.pk) if thread.status == ThreadStatus.INTERRUPTED else {},
        "error": error,
    }


def joined_json(fields: Mapping[str, Any], ready: Mapping[str, bytes]) -> bytes:
    """An object of fields, and of others whose JSON is there already."""
    parts = [b'"%s":%s' % (name.encode(), text) for name, text in ready.items()]
    if fields:
        parts.insert(0, _bytes(fields)[1:-1])
    return b"{" + b",".join(parts) + b"}"


def values_object(messages: list[str], values: Mapping[str, Any] | None = None) -> bytes:
    """A thread's state from transcript rows, which are JSON already, and its other values."""
    head = _bytes(values)[:-1] + b"," if values else b"{"
    return head + b'"messages":[' + ",".join(messages).encode() + b"]}"


def run_object(run: Run) -> dict[str, Any]:
    return {
        "run_id": str(run.pk),
        "thread_id": str(run.thread_id),
        "assistant_id": run.options.get("assistant_id") or assistant_id(run.agent),
        "created_at": run.created_at.isoformat(),
        "updated_at": (run.ended_at or run.started_at or run.created_at).isoformat(),
        "status": TO_LANGGRAPH[RunStatus(run.status)],
        "metadata": run.metadata,
        "kwargs": {},
        "multitask_strategy": run.options.get("multitask_strategy", "enqueue"),
        "error": error_object(run),
    }


def ending_object(run: Run) -> dict[str, str] | None:
    """What kept a run from its end: as `error_object`, also for one that was stopped."""
    if run.status in {RunStatus.CANCELLED, RunStatus.INTERRUPTED}:
        sentence = why(
            status=run.status, stop_reason=run.stop_reason, error_code=run.error_code, detail=run.stop_detail
        )
        return {"error": run.error_code or run.status, "message": sentence}
    return error_object(run)


def error_object(run: Run) -> dict[str, str] | None:
    if run.status not in {RunStatus.ERROR, RunStatus.TIMEOUT}:
        return None
    sentence = run.error or why(
        status=run.status, stop_reason=run.stop_reason, error_code=run.error_code, detail=run.stop_detail
    )
    return {"error": run.error_code or run.status, "message": sentence}
