"""Reading a thread's log: event rows with the transcript's messages in their places."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
from django.db import connection
from django.db.models import Max

from runs.event_types import EventType
from runs.history import Cut
from runs.models import Event, Thread
from runs.rows import as_uuid, key_of
from runs.transcript import from_json, readable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.db.models import QuerySet

CHUNK = 2000
_THREADS_PER_QUERY = 200  # SQLite parses an OR of many as deep as it is long, and refuses a thousand
_SELECT = (
    "SELECT e.thread_id, e.seq, e.run_id, e.type, e.at, CASE WHEN e.type = 'message' THEN m.data ELSE e.data END"
    " FROM runs_event e LEFT JOIN runs_message m ON m.thread_id = e.thread_id AND m.seq = e.seq"
)


@dataclass(frozen=True, slots=True)
class LogRow:
    """One event. `data` is a JSON object as text; for `message` it is the message itself."""

    seq: int
    run_id: UUID
    type: str
    at: datetime
    data: str


def read(thread_id: UUID, after: int, *, limit: int = CHUNK) -> list[LogRow]:
    """Rows past `after`, oldest first, at most `limit`."""
    return read_many({thread_id: after}, limit=limit).get(thread_id, [])


def read_many(cursors: Mapping[UUID, int], *, limit: int = CHUNK) -> dict[UUID, list[LogRow]]:
    """Rows past each thread's cursor. When there are more than `limit`, later threads give fewer rows or none."""
    found: dict[UUID, list[LogRow]] = defaultdict(list)
    threads = list(cursors)
    for start in range(0, len(threads), _THREADS_PER_QUERY):
        _read_into(found, {pk: cursors[pk] for pk in threads[start : start + _THREADS_PER_QUERY]}, limit)
    return found


def _read_into(found: dict[UUID, list[LogRow]], cursors: Mapping[UUID, int], limit: int) -> None:
    places = [value for thread_id, seq in cursors.items() for value in (key_of(thread_id), seq)]
    condition = " OR ".join(["(e.thread_id = %s AND e.seq > %s)"] * len(cursors))
    with connection.cursor() as cursor:
        cursor.execute(f"{_SELECT} WHERE {condition} ORDER BY e.thread_id, e.seq LIMIT %s", [*places, limit])
        for row in cursor.fetchall():
            found[as_uuid(row[0])].append(
                LogRow(row[1], as_uuid(row[2]), row[3], _time(row[4]), readable(row[5] or "{}"))
            )


def cuts_of(thread_id: UUID) -> list[Cut]:
    """The rewinds of a thread, oldest first."""
    rewound = of_history(thread_id).filter(type=EventType.THREAD_REWOUND).values_list("seq", "run_id", "data")
    facts = [(seq, run_id, from_json(data)) for seq, run_id, data in rewound]
    return [Cut(seq, fact["to"], fact.get("forget", False), run_id) for seq, run_id, fact in facts]


def updates_of(thread_id: UUID) -> list[tuple[int, dict[str, Any]]]:
    """What programs set in a thread's state besides messages, oldest first: (number, values)."""
    updated = of_history(thread_id).filter(type=EventType.STATE_UPDATED).values_list("seq", "data")
    return [(seq, from_json(data).get("values", {})) for seq, data in updated]


def of_history(thread_id: UUID) -> QuerySet[Event]:
    """The rare events that make a history of the transcript; a partial index has them."""
    kinds = [EventType.THREAD_REWOUND.value, EventType.STATE_UPDATED.value]
    return Event.objects.filter(thread_id=thread_id, type__in=kinds).order_by("seq")


def settled_upto(thread_id: UUID) -> dict[UUID, int]:
    """For each run of a thread the number up to which its deltas say nothing new: a message or its end follows."""
    settling = Event.objects.filter(thread_id=thread_id, type__in=[EventType.MESSAGE, EventType.RUN_ENDED])
    return dict(settling.values("run_id").annotate(upto=Max("seq")).values_list("run_id", "upto"))


def without_settled(rows: list[LogRow], upto: Mapping[UUID, int]) -> list[LogRow]:
    """The rows without the deltas that `settled_upto` names."""
    return [row for row in rows if row.type != EventType.DELTA or row.seq > upto.get(row.run_id, 0)]


def without_settled_deltas(rows: list[LogRow]) -> list[LogRow]:
    """For a reader that starts at the beginning: the pieces of a reply whose message follows say nothing new."""
    kept: list[LogRow] = []
    settled_runs: set[UUID] = set()
    for row in reversed(rows):
        if row.type == EventType.DELTA and row.run_id in settled_runs:
            continue
        if row.type in {EventType.MESSAGE, EventType.RUN_ENDED}:
            settled_runs.add(row.run_id)
        kept.append(row)
    return kept[::-1]


def unfinished_reply(thread_id: UUID, run_id: UUID) -> dict[str, str]:
    """The reply a run was writing when its worker was lost: {"id", "content"}; {} when it was writing none."""
    told = Event.objects.filter(thread_id=thread_id, run_id=run_id)
    settled = told.filter(type__in=[EventType.MESSAGE, EventType.RUN_STARTED]).order_by("-seq")
    began = settled.values_list("seq", flat=True).first() or 0
    pieces = [
        orjson.loads(data)
        for data in told.filter(type=EventType.DELTA, seq__gt=began).order_by("seq").values_list("data", flat=True)
    ]
    if not pieces:
        return {}
    newest, words = pieces[-1]["id"], ""
    for piece in pieces:
        if piece["id"] == newest:
            words = piece["text"] if piece.get("restarts") else words + piece["text"]
    return {"id": newest, "content": words}


def last_seqs(thread_ids: list[UUID]) -> dict[UUID, int]:
    """The newest event's number of each thread."""
    return dict(Thread.objects.filter(pk__in=thread_ids).values_list("pk", "last_seq"))


def _time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    return datetime.fromisoformat(value).replace(tzinfo=UTC)
