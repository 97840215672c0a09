"""Checkpoints of graphs as rows. Every write is a verb: it changes nothing unless its run is held with its fence."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.db.models import F, Q

from runs.event_types import GraphPart
from runs.models import GraphBlob, GraphCheckpoint, GraphWrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from runs.event_types import Fact
    from runs.ledger import Entry, Ledger
    from runs.lifecycle import Held
    from runs.models import Run

Typed = tuple[str, bytes]  # LangGraph's encoding of a value: its kind and its bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfHeld:
    held: Held

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.held.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.held.run_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PutCheckpoint(_OfHeld):
    """Store a checkpoint and the channel values that are new in it. Raises Fenced when the run is no longer held."""

    ns: str
    checkpoint_id: str
    parent_id: str
    data: Typed
    metadata: Typed
    blobs: Mapping[tuple[str, str], Typed] = field(default_factory=dict)  # by (channel, version)

    def apply(self, ledger: Ledger) -> None:
        run = ledger.held(self.held.run_id, self.held.fence)
        thread = ledger.threads[run.thread_id]
        place = {"thread_id": run.thread_id, "ns": self.ns}
        blobs = [
            GraphBlob(**place, channel=channel, version=version, run_id=run.pk, kind=kind, data=data)
            for (channel, version), (kind, data) in self.blobs.items()
        ]
        GraphBlob.objects.bulk_create(blobs, ignore_conflicts=True)
        columns = {
            "parent_id": self.parent_id,
            "run_id": run.pk,
            "seq": thread.last_seq,
            "kind": self.data[0],
            "data": self.data[1],
            "metadata_kind": self.metadata[0],
            "metadata": self.metadata[1],
            "created_at": ledger.now,
        }
        row = GraphCheckpoint(**place, checkpoint_id=self.checkpoint_id, **columns)
        known = GraphCheckpoint.objects.filter(**place, checkpoint_id=self.checkpoint_id)
        if not known.update(**columns):
            GraphCheckpoint.objects.bulk_create([row])


@dataclass(frozen=True, slots=True, kw_only=True)
class PutWrites(_OfHeld):
    """Store what a task has written. Raises Fenced when the run is no longer held.

    A write that is there stays; LangGraph's own (negative `idx`) are replaced.
    """

    ns: str
    checkpoint_id: str
    task_id: str
    path: str
    writes: Sequence[tuple[int, str, Typed]]  # (idx, channel, value)

    def apply(self, ledger: Ledger) -> None:
        run = ledger.held(self.held.run_id, self.held.fence)
        place = {
            "thread_id": run.thread_id,
            "ns": self.ns,
            "checkpoint_id": self.checkpoint_id,
            "task_id": self.task_id,
        }
        own = [idx for idx, _channel, _value in self.writes if idx < 0]
        replaced = {row.idx: row for row in GraphWrite.objects.filter(**place, idx__in=own)} if own else {}
        GraphWrite.objects.filter(**place, idx__in=list(replaced)).delete()
        rows = [
            GraphWrite(
                **place,
                idx=idx,
                channel=channel,
                path=self.path,
                kind=kind,
                data=data,
                run_id=run.pk,
                **_before(replaced.get(idx), run.pk),
            )
            for idx, channel, (kind, data) in self.writes
        ]
        GraphWrite.objects.bulk_create(rows, ignore_conflicts=True)


def _before(replaced: GraphWrite | None, run_id: UUID) -> dict[str, Any]:
    """What a run has replaced of an earlier run's: see `runs.graphs.returning.undo`."""
    if replaced is None:
        return {}
    if replaced.run_id == run_id:
        return {name: getattr(replaced, name) for name in ("run_before", "kind_before", "data_before")}
    return {"run_before": replaced.run_id, "kind_before": replaced.kind, "data_before": replaced.data}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand(_OfHeld):
    """Tell where a graph stands: its new messages, its other values, what streams show. Raises Fenced.

    Result: whether a message waits that the run should pick up.
    """

    checkpoint_id: str
    shown: Mapping[str, Any]
    entries: Sequence[Entry] = ()
    parent_entries: Sequence[Fact] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None  # None: as they were
    is_step: bool = True  # False: only what is known of the checkpoint has changed

    def thread_ids(self) -> tuple[UUID, ...]:
        return self.held.thread_ids() if self.parent_entries else (self.held.thread_id,)

    def apply(self, ledger: Ledger) -> bool:
        run = ledger.held(self.held.run_id, self.held.fence)
        thread = ledger.threads[run.thread_id]
        values = None if self.values is None else dict(self.values)
        step = [GraphPart(mode="values", checkpoint=self.checkpoint_id, values=values)] if self.is_step else []
        ledger.append(thread, run.pk, [*self.entries, *step])
        upper = ledger.threads.get(self.held.parent_thread_id) if self.held.parent_thread_id else None
        if self.parent_entries and upper is not None and run.parent_id is not None:
            ledger.append(upper, run.parent_id, self.parent_entries)
        if self.values is not None:
            ledger.set_values(thread, dict(self.values))
        if self.changes:
            ledger.change(run, **self.changes)
        self._show(ledger, run)
        return bool(run.steers)

    def _show(self, ledger: Ledger, run: Run) -> None:
        place = {"thread_id": run.thread_id, "ns": "", "checkpoint_id": self.checkpoint_id}
        known = GraphCheckpoint.objects.filter(**place)
        # A run that goes on from another's checkpoint tells of that one too: a rollback puts back what stood there.
        known.exclude(run_id=run.pk).exclude(told_by=run.pk).update(shown_before=F("shown"))
        told: dict[str, Any] = {"shown": dict(self.shown), "told_by": run.pk}
        if self.entries:
            told["seq"] = ledger.threads[run.thread_id].last_seq  # its messages stand before it in the log
        if not known.update(**told):
            self._announce(ledger, run.pk, place)

    def _announce(self, ledger: Ledger, run_id: UUID, place: Mapping[str, Any]) -> None:
        """LangGraph tells of a checkpoint before it has stored it. Until then the row has no kind: nobody reads it."""
        facts = {"run_id": run_id, "seq": 0, "data": b"", "metadata": b"", "created_at": ledger.now, "told_by": run_id}
        GraphCheckpoint.objects.bulk_create([GraphCheckpoint(**place, **facts, shown=dict(self.shown))])


def _stored(thread_id: UUID) -> Any:
    return GraphCheckpoint.objects.filter(thread_id=thread_id).exclude(kind="")


# --- reading ------------------------------------------------------------------------------------------------------
def find(thread_id: UUID, ns: str, checkpoint_id: str | None) -> GraphCheckpoint | None:
    """A checkpoint, or the newest one of its graph."""
    rows = _stored(thread_id).filter(ns=ns)
    if checkpoint_id:
        return rows.filter(checkpoint_id=checkpoint_id).first()
    return rows.order_by("-checkpoint_id").first()


def listed(
    thread_id: UUID, *, ns: str | None = None, before: str | None = None, limit: int | None = None
) -> list[GraphCheckpoint]:
    """Checkpoints of a thread, newest first."""
    rows = _stored(thread_id)
    if ns is not None:
        rows = rows.filter(ns=ns)
    if before:
        rows = rows.filter(checkpoint_id__lt=before)
    return list(rows.order_by("-checkpoint_id")[:limit])


def writes_of(thread_id: UUID, ns: str, checkpoint_id: str) -> list[GraphWrite]:
    return list(GraphWrite.objects.filter(thread_id=thread_id, ns=ns, checkpoint_id=checkpoint_id))


def blobs_of(thread_id: UUID, ns: str, versions: Mapping[str, str]) -> dict[str, Typed]:
    """The stored values of channels, by channel; one that has none in this version is left out."""
    if not versions:
        return {}
    wanted = reduce(or_, (Q(channel=channel, version=version) for channel, version in versions.items()))
    rows = GraphBlob.objects.filter(wanted, thread_id=thread_id, ns=ns)
    return {row.channel: (row.kind, bytes(row.data)) for row in rows}


def begun(run_id: UUID, thread_id: UUID) -> bool:
    """Whether the run's input has entered the graph's state."""
    return _stored(thread_id).filter(ns="", run_id=run_id).exists()
