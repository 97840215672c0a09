"""A thread's history as the wire's states: one for each checkpoint, with what comes next and what it goes on from."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from runs import history, log
from runs.agent_protocol.containing import contains
from runs.agent_protocol.shapes import error_object, joined_json, values_object
from runs.errors import CheckpointNotFound, ThreadNotFound
from runs.lifecycle.rewinding import NO_RUN
from runs.models import Event, Run, Thread
from runs.rows import as_uuid, key_of
from runs.statuses import ThreadStatus
from runs.transcript import from_json, open_calls, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

STATE_FIELDS: Final = (
    "values",
    "next",
    "tasks",
    "metadata",
    "created_at",
    "checkpoint",
    "parent_checkpoint",
    "interrupts",
    "checkpoint_id",
    "parent_checkpoint_id",
)
MAX_HISTORY_BYTES: Final = 32 << 20  # of one answer: each state holds the whole conversation up to it
_TASKS = uuid.UUID("1f6f1c39-6d6a-4e24-9a7c-0d3c7f0a8e11")  # the name space of the ids of tasks
_NOTHING_YET: Final[dict[str, Any]] = {
    "values": {},
    "next": [],
    "tasks": [],
    "metadata": None,
    "created_at": None,
    "checkpoint": None,
    "parent_checkpoint": None,
    "interrupts": [],
    "checkpoint_id": None,
    "parent_checkpoint_id": None,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One checkpoint: a message, or values that a program set (`text` is empty)."""

    seq: int
    run_id: UUID
    text: str


class Past:
    """Everything of one thread's history, read at once."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.cuts = log.cuts_of(thread.pk)
        self.updates = log.updates_of(thread.pk)
        self.messages = _messages(thread.pk)
        updated = [Step(seq, NO_RUN, "") for seq, _values in self.updates]
        steps = sorted([*self.messages, *updated], key=lambda step: step.seq)
        gone = history.forgotten([step.seq for step in steps], self.cuts)
        self.steps = {step.seq: step for step in steps if step.seq not in gone}

    @property
    def newest(self) -> int | None:
        """The checkpoint that the thread is at."""
        line = history.line_to(self.thread.last_seq, self.cuts)
        return max((seq for seq in self.steps if history.on_line(seq, line)), default=None)

    def seq_of(self, checkpoint: UUID) -> int:
        """The number of a checkpoint. Raises CheckpointNotFound."""
        seq = history.seq_of(self.thread.pk, checkpoint)
        if seq is None or seq not in self.steps:
            raise CheckpointNotFound(self.thread.pk)
        return seq

    def states(
        self, seqs: Iterable[int], fields: Sequence[str] = STATE_FIELDS, *, subgraphs: bool = False
    ) -> list[bytes]:
        """The states at these checkpoints as JSON, fewer when they have more than MAX_HISTORY_BYTES together."""
        wanted = list(seqs)
        times = _times(self.thread.pk, wanted)
        states: list[bytes] = []
        size = 0
        for seq in wanted:
            states.append(self._state(self.steps[seq], times.get(seq), fields, subgraphs=subgraphs))
            size += len(states[-1])
            if size > MAX_HISTORY_BYTES:
                break
        return states

    def metadata(self, step: Step) -> dict[str, Any]:
        line = history.line_to(step.seq, self.cuts)
        place = sum(history.on_line(seq, line) for seq in self.steps if seq <= step.seq)
        by_hand = step.run_id == NO_RUN
        source = "update" if by_hand else "input" if step.text and _kind(step.text) == "human" else "loop"
        found = {**self.thread.metadata, "thread_id": str(self.thread.pk), "source": source, "step": place - 1}
        found["parents"] = {}
        return found if by_hand else {**found, "run_id": str(step.run_id)}

    def _state(self, step: Step, at: datetime | None, fields: Sequence[str], *, subgraphs: bool) -> bytes:
        line = history.line_to(step.seq, self.cuts)
        said = [message for message in self.messages if history.on_line(message.seq, line)]
        before = history.parent_of(step.seq, self.steps, self.cuts)
        tasks = self._tasks(step, said, subgraphs=subgraphs) if {"next", "tasks"} & set(fields) else []
        whole: dict[str, Any] = {
            "next": [task["name"] for task in tasks],
            "tasks": tasks,
            "metadata": self.metadata(step),
            "created_at": at.isoformat() if at else None,
            "checkpoint": checkpoint_object(self.thread.pk, step.seq),
            "parent_checkpoint": checkpoint_object(self.thread.pk, before) if before else None,
            "interrupts": [],
            "checkpoint_id": str(history.checkpoint_id(self.thread.pk, step.seq)),
            "parent_checkpoint_id": str(history.checkpoint_id(self.thread.pk, before)) if before else None,
        }
        kept = {name: whole[name] for name in fields if name in whole}
        if "values" not in fields:
            return joined_json(kept, {})
        values = values_object([message.text for message in said], history.values_on(line, self.updates))
        return joined_json(kept, {"values": values})

    def _tasks(self, step: Step, said: Sequence[Step], *, subgraphs: bool) -> list[dict[str, Any]]:
        """What would run next: the model when somebody has spoken to it, the tools that it has called."""
        if not said:
            return []
        calls = open_calls([from_json(one.text) for one in said[-200:]])
        names = [("tools", call["id"]) for call in calls]
        if not calls and _kind(said[-1].text) != "ai":
            names = [("model", "")]
        error = self._error() if step.seq == self.newest else None
        children = self._children(said[-1].run_id, [call["id"] for call in calls])
        return [
            {
                "id": str(uuid.uuid5(_TASKS, f"{self.thread.pk}/{step.seq}/{call}")),
                "name": name,
                "path": ["__pregel_pull", name],
                "error": error,
                "interrupts": [],
                "checkpoint": children.get(call),
                "state": _state_below(children.get(call)) if subgraphs else None,
                "result": None,
            }
            for name, call in names
        ]

    def _error(self) -> str | None:
        if self.thread.status != ThreadStatus.ERROR:
            return None
        last = Run.objects.ended().filter(thread_id=self.thread.pk).order_by("-ended_at").first()
        found = error_object(last) if last else None
        return f"{found['error']}: {found['message']}" if found else None

    def _children(self, run_id: UUID, calls: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The subagents that open calls have started: their threads are what the wire calls subgraphs."""
        if not calls:
            return {}
        runs = Run.objects.filter(parent_id=run_id, tool_call_id__in=calls).values_list("tool_call_id", "thread_id")
        return {str(call): {"thread_id": str(thread_id), "checkpoint_ns": ""} for call, thread_id in runs}


def past_of(thread_id: UUID, owner_id: int) -> Past:
    """Raises ThreadNotFound."""
    thread = Thread.objects.filter(pk=thread_id, owner_id=owner_id).first()
    if thread is None:
        raise ThreadNotFound(thread_id)
    return Past(thread)


def state_now(past: Past, fields: Sequence[str] = STATE_FIELDS, *, subgraphs: bool = False) -> bytes:
    if past.newest is None:
        return joined_json({name: _NOTHING_YET[name] for name in fields}, {})
    return past.states([past.newest], fields, subgraphs=subgraphs)[0]


def earlier(past: Past, *, before: int | None, upto: int | None, metadata: Mapping[str, Any], limit: int) -> list[int]:
    """Checkpoints, newest first: of every branch, or of the line to `upto`; those before `before` only."""
    line = history.line_to(upto, past.cuts) if upto is not None else None
    found = []
    for seq in sorted(past.steps, reverse=True):
        if (before is not None and seq >= before) or (line is not None and not history.on_line(seq, line)):
            continue
        if metadata and not contains(past.metadata(past.steps[seq]), metadata):
            continue
        found.append(seq)
        if len(found) == limit:
            break
    return found


def checkpoint_object(thread_id: UUID, seq: int) -> dict[str, str]:
    return {
        "thread_id": str(thread_id),
        "checkpoint_ns": "",
        "checkpoint_id": str(history.checkpoint_id(thread_id, seq)),
    }


def _state_below(child: Mapping[str, Any] | None) -> Any:
    if child is None:
        return None
    thread = Thread.objects.filter(pk=child["thread_id"]).first()
    return from_json(state_now(Past(thread))) if thread else None


def _messages(thread_id: UUID) -> list[Step]:
    with connection.cursor() as cursor:
        select = "SELECT seq, run_id, data FROM runs_message WHERE thread_id = %s ORDER BY seq"
        cursor.execute(select, [key_of(thread_id)])
        return [Step(seq, as_uuid(run_id), readable(data)) for seq, run_id, data in cursor.fetchall()]


def _times(thread_id: UUID, seqs: Sequence[int]) -> dict[int, datetime]:
    return dict(Event.objects.filter(thread_id=thread_id, seq__in=seqs).values_list("seq", "at"))


def _kind(text: str) -> str:
    return str(from_json(text).get("type", ""))
