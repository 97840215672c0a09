"""Reads of the wire's endpoints. Each checks the owner: somebody else's thread or run does not exist."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from django.db import connection

from runs import rows
from runs.agent_protocol.shapes import error_object, thread_object, values_object
from runs.errors import BadInput, RunNotFound, ThreadNotFound
from runs.event_types import EventType
from runs.models import Event, Message, Run, Thread
from runs.rows import key_of
from runs.statuses import TO_LANGGRAPH, ThreadStatus
from runs.transcript import from_json, readable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID


def messages_now(thread_id: UUID) -> list[str]:
    """The messages of a thread's state as JSON texts. For the state at another time see `state_upto`."""
    select = f"SELECT data FROM {Message._meta.db_table} WHERE thread_id = %s AND left_at IS NULL ORDER BY seq"
    with connection.cursor() as cursor:
        cursor.execute(select, [key_of(thread_id)])
        return [readable(data) for (data,) in cursor.fetchall()]


def thread_exists(thread_id: UUID) -> bool:
    return Thread.objects.filter(pk=thread_id).exists()


def thread_answer(thread_id: UUID, owner_id: int) -> bytes:
    thread = Thread.objects.filter(pk=thread_id, owner_id=owner_id).first()
    if thread is None:
        raise ThreadNotFound(thread_id)
    messages = messages_now(thread_id)
    error = None
    if thread.status == ThreadStatus.ERROR:
        last = Run.objects.ended().filter(thread_id=thread_id).order_by("-ended_at").first()
        error = error_object(last) if last else None
    return thread_object(thread, values_object(messages, thread.values) if messages or thread.values else None, error)


def run_exists(run_id: UUID) -> bool:
    return Run.objects.filter(pk=run_id).exists()


def find_run(thread_id: UUID, run_id: UUID, owner_id: int) -> Run:
    """A run of this thread of this person. Raises RunNotFound."""
    (found,) = find_runs([(thread_id, run_id, owner_id)])
    if isinstance(found, RunNotFound):
        raise found
    return found


def find_runs(wanted: Sequence[tuple[UUID, UUID, int]]) -> list[Run | RunNotFound]:
    """For each (thread, run, owner) what `find_run` says: programs that poll ask nothing else, and many at once."""
    by_owner: dict[int, set[UUID]] = defaultdict(set)
    for _thread_id, run_id, owner_id in wanted:
        by_owner[owner_id].add(run_id)
    # The statement is written out, and what a run ran with is left out.
    own = "EXISTS (SELECT 1 FROM runs_thread t WHERE t.id = thread_id AND t.owner_id = %s)"
    found: dict[tuple[UUID, int], Run] = {}
    for owner_id, run_ids in by_owner.items():
        among, keys = rows.among("id", sorted(run_ids))
        for run in rows.read(Run, f"{among} AND {own}", [*keys, owner_id], left_out=("definition", "input")):
            found[run.pk, owner_id] = run
    return [_of_thread(found.get((run_id, owner_id)), thread_id, run_id) for thread_id, run_id, owner_id in wanted]


def _of_thread(run: Run | None, thread_id: UUID, run_id: UUID) -> Run | RunNotFound:
    return RunNotFound(run_id) if run is None or run.thread_id != thread_id else run


def find_run_anywhere(run_id: UUID, owner_id: int) -> Run:
    """A run by its own id, on whatever thread of this person."""
    own = "EXISTS (SELECT 1 FROM runs_thread t WHERE t.id = thread_id AND t.owner_id = %s)"
    found = rows.read(Run, f"id = %s AND {own}", [key_of(run_id), owner_id], left_out=("definition", "input"))
    if not found:
        raise RunNotFound(run_id)
    return found[0]


def list_runs(thread_id: UUID, owner_id: int, status: str | None, limit: int, offset: int) -> list[Run]:
    """Newest first. `status` is a word of the wire."""
    check_owner(thread_id, owner_id)
    runs = Run.objects.filter(thread_id=thread_id).order_by("-created_at", "-pk")
    if status:
        ours = [own for own, word in TO_LANGGRAPH.items() if word == status]
        if not ours:
            raise BadInput("status", f"expected one of {', '.join(sorted(set(TO_LANGGRAPH.values())))}")
        runs = runs.filter(status__in=ours)
    return list(runs[offset : offset + limit])


def end_seq(run_id: UUID, thread_id: UUID) -> int | None:
    """The number of the run's last event; None while it is active."""
    ends = Event.objects.filter(thread_id=thread_id, run_id=run_id, type=EventType.RUN_ENDED)
    seq: Any = ends.order_by("-seq").values_list("seq", flat=True).first()
    return seq


def replies_under_way(thread_id: UUID, run_id: UUID, upto: int) -> dict[str, str]:
    """The text so far, by message id, of the run's replies whose message had not been stored at event `upto`."""
    told = Event.objects.filter(thread_id=thread_id, run_id=run_id, seq__lte=upto)
    stored = told.filter(type=EventType.MESSAGE).order_by("-seq").values_list("seq", flat=True).first() or 0
    texts: dict[str, str] = {}
    for row in told.filter(type=EventType.DELTA, seq__gt=stored).order_by("seq").values_list("data", flat=True):
        piece = from_json(row)
        before = "" if piece.get("restarts") else texts.get(piece["id"], "")
        texts[piece["id"]] = before + piece["text"]
    return texts


def check_owner(thread_id: UUID, owner_id: int) -> None:
    """Raise ThreadNotFound for a thread that is not this person's."""
    if not Thread.objects.filter(pk=thread_id, owner_id=owner_id).exists():
        raise ThreadNotFound(thread_id)
