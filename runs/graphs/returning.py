"""Going back on a graph's thread: what a run has changed of its checkpoints is undone, or a run begins at one of them.

Only the thread's active run can be rolled back, so one earlier version of each row is enough to undo it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import F

from runs import history
from runs.graphs import checkpoints
from runs.graphs.asking import OPTION
from runs.models import GraphBlob, GraphCheckpoint, GraphWrite, Message, Run
from runs.statuses import RunStatus
from runs.transcript import from_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from runs.history import Cut


def begins_at(run: Run) -> str:
    """The checkpoint of its graph that a run was asked to begin at; empty: where the thread is."""
    asked = run.options.get(OPTION)
    return str(asked.get("checkpoint_id") or "") if isinstance(asked, dict) else ""


def last_message_at(row: GraphCheckpoint, cuts: Sequence[Cut]) -> int:
    """The number of the last message of a thread that a state holds; 0 when it holds none."""
    line = history.line_to(row.seq, cuts)
    ids = {one if isinstance(one, str) else one.get("id") for one in (row.shown or {}).get("messages", ())}
    rows = Message.objects.filter(thread_id=row.thread_id, seq__lte=row.seq).order_by("-seq")
    said = ((seq, from_json(data).get("id")) for seq, data in rows.values_list("seq", "data").iterator())
    return next((seq for seq, known in said if known in ids and history.on_line(seq, line)), 0)


def values_at(row: GraphCheckpoint) -> dict[str, Any]:
    """The state at a checkpoint besides its messages."""
    return dict((row.shown or {}).get("values", {}))


def undo(thread_id: UUID, run_id: UUID) -> bool:
    """Remove what a run has stored of its graph, and put back what it had replaced. Whether there was anything.

    For a verb that has locked the thread, once the run has ended: its worker is fenced and writes nothing more.
    """
    GraphBlob.objects.filter(thread_id=thread_id, run_id=run_id).delete()
    writes = GraphWrite.objects.filter(thread_id=thread_id, run_id=run_id)
    writes.filter(kind_before="").delete()
    put_back = writes.update(
        kind=F("kind_before"), data=F("data_before"), run_id=F("run_before"), kind_before="", data_before=None
    )
    removed, _by_kind = GraphCheckpoint.objects.filter(thread_id=thread_id, run_id=run_id).delete()
    told = GraphCheckpoint.objects.filter(thread_id=thread_id, told_by=run_id)
    told_before = told.update(shown=F("shown_before"), told_by=F("run_id"), shown_before=None)
    return bool(put_back or removed or told_before)


def waits(thread_id: UUID, *, without: UUID) -> bool:
    """Whether the graph waits for somebody, as the run before the run `without` had left it."""
    newest = checkpoints.find(thread_id, "", None)
    if newest is None or not (newest.shown or {}).get("next"):
        return False
    runs = Run.objects.ended().filter(thread_id=thread_id, parent=None).exclude(pk=without)
    last = runs.order_by("-ended_at").values_list("pk", "status").first()
    return last is not None and last[0] in {newest.run_id, newest.told_by} and last[1] == RunStatus.SUCCESS
