"""Where a graph stands on a thread, for readers that do not load LangGraph: from the rows' JSON alone."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from runs.graphs import checkpoints
from runs.models import GraphCheckpoint, Message
from runs.transcript import from_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from runs.transcript import WireMessage

    _Said = defaultdict[str, list[tuple[int, WireMessage]]]


def is_graphs(thread_id: UUID) -> bool:
    """Whether a graph has worked on this thread."""
    return GraphCheckpoint.objects.filter(thread_id=thread_id, ns="").exclude(kind="").exists()


def interrupts_of(thread_id: UUID) -> dict[str, list[Any]]:
    """What the graph asks of somebody: {task id: [{"id", "value"}]}; only tasks that ask."""
    row = checkpoints.find(thread_id, "", None)
    tasks = (row.shown or {}).get("tasks", []) if row is not None else []
    return {task["id"]: task["interrupts"] for task in tasks if task.get("interrupts")}


def state_of(thread_id: UUID, checkpoint_id: str | None = None) -> dict[str, Any] | None:
    """The state at a checkpoint, or now, as the wire's ThreadState; None for a checkpoint that is not there."""
    row = checkpoints.find(thread_id, "", checkpoint_id)
    return None if row is None else _states(thread_id, [row])[0]


def values_upto(thread_id: UUID, seq: int | None) -> dict[str, Any]:
    """The graph's state besides its messages, as the thread's log had told it by this number, or now."""
    rows = GraphCheckpoint.objects.filter(thread_id=thread_id, ns="", shown__isnull=False).exclude(kind="")
    if seq is not None:
        rows = rows.filter(seq__lte=seq)
    shown = rows.order_by("-checkpoint_id").values_list("shown", flat=True).first()
    return dict((shown or {}).get("values", {}))


def history_of(thread_id: UUID, *, limit: int, before: str | None = None) -> list[dict[str, Any]]:
    """The states, newest first."""
    return _states(thread_id, checkpoints.listed(thread_id, ns="", before=before, limit=limit))


def _states(thread_id: UUID, rows: Sequence[GraphCheckpoint]) -> list[dict[str, Any]]:
    said: _Said = defaultdict(list)
    for seq, data in Message.objects.filter(thread_id=thread_id).order_by("seq").values_list("seq", "data"):
        message = from_json(data)
        said[str(message.get("id"))].append((seq, message))
    return [_state(row, said) for row in rows]


def _state(row: GraphCheckpoint, said: _Said) -> dict[str, Any]:
    shown = row.shown or {}
    messages = [_at(row.seq, said.get(one, [])) if isinstance(one, str) else one for one in shown.get("messages", [])]
    values = {**shown.get("values", {}), **({"messages": [m for m in messages if m]} if messages else {})}
    tasks = shown.get("tasks", [])
    return {
        "values": values,
        "next": shown.get("next", []),
        "tasks": tasks,
        "metadata": {**shown.get("metadata", {}), "run_id": str(row.run_id), "thread_id": str(row.thread_id)},
        "created_at": row.created_at.isoformat(),
        "checkpoint": _place(row, row.checkpoint_id),
        "parent_checkpoint": _place(row, row.parent_id) if row.parent_id else None,
        "interrupts": [one for task in tasks for one in task.get("interrupts") or ()],
        "checkpoint_id": row.checkpoint_id,
        "parent_checkpoint_id": row.parent_id or None,
    }


def _at(seq: int, versions: Sequence[tuple[int, WireMessage]]) -> WireMessage | None:
    """A message as it was at a number of the log: one that a fork said again stands there more than once."""
    return next((message for at, message in reversed(versions) if at <= seq), versions[0][1] if versions else None)


def _place(row: GraphCheckpoint, checkpoint_id: str) -> dict[str, Any]:
    return {"thread_id": str(row.thread_id), "checkpoint_ns": row.ns, "checkpoint_id": checkpoint_id}
