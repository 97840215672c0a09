"""The django-q2 queue: the only module that names its tables and packages.

A run that may be claimed has one row there; `OrmQ.lock` is the lease: a row may be taken when its lock is in the past.
The row is written in the caller's transaction, so that a run without a row, or a row without its run, cannot be.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Q
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule, Task
from django_q.signing import BadSignature, SignedPackage

from runs import rows
from runs.models import Run
from runs.rows import add as insert
from runs.rows import as_uuid, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

logger = logging.getLogger(__name__)
RUN_FUNCTION = "runs.worker.executor.execute_run"
_WINDOW = 400  # queue rows looked at per claim; fairness is decided among these


@dataclass(frozen=True, slots=True)
class Candidate:
    """A queue row that may be taken. `run_id` is None for a plain django-q2 task."""

    queue_id: int
    run_id: UUID | None
    owner_id: int | None
    depth: int


def package(run_id: UUID) -> str:
    """What django-q2 stores for a task, signed as it does."""
    return str(
        SignedPackage.dumps(
            {
                "id": run_id.hex,
                "name": f"run-{run_id}",
                "func": RUN_FUNCTION,
                "args": (str(run_id),),
                "kwargs": {},
                "started": None,
            }
        )
    )


def unpack(payload: str) -> dict[str, Any] | None:
    """The task a queue row holds; None when it was not signed by this installation."""
    try:
        task = SignedPackage.loads(payload)
    except BadSignature:
        return None
    except Exception as fault:  # noqa: BLE001 - unpickling raises whatever the classes of another version raise
        logger.warning("a queue row cannot be read (%s: %s); it is removed", type(fault).__name__, fault)
        return None
    return task if isinstance(task, dict) and "func" in task else None


def add(leases: Mapping[UUID, datetime]) -> dict[UUID, int]:
    """Queue runs, in the caller's transaction: each may be taken from the moment its lease ends.

    Returns the queue row's id of each.
    """
    packages = {package(run_id): run_id for run_id in leases}
    values = [
        value
        for payload, run_id in packages.items()
        for value in (Conf.CLUSTER_NAME, payload, connection.ops.adapt_datetimefield_value(leases[run_id]))
    ]
    places = ", ".join(["(%s, %s, %s)"] * len(packages))
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO django_q_ormq (key, payload, lock) VALUES {places} RETURNING payload, id", values)
        return {packages[payload]: queue_id for payload, queue_id in cursor.fetchall()}


_CANDIDATES = (
    "SELECT q.id, r.id, t.owner_id, COALESCE(r.depth, 0) AS depth FROM django_q_ormq q"
    " LEFT JOIN runs_run r ON r.queue_id = q.id LEFT JOIN runs_thread t ON t.id = r.thread_id"
    " WHERE q.key = %s AND q.lock <= %s"
)
_OLDEST = f"{_CANDIDATES} ORDER BY q.id LIMIT %s"
# Ranks all rows as `pick` does: dear, but in a long queue the oldest rows may all belong to one person.
_FAIREST = (
    f"SELECT id, run_id, owner_id, depth FROM ({_CANDIDATES.replace('r.id,', 'r.id AS run_id,')}) AS waiting"
    " ORDER BY depth = 0, ROW_NUMBER() OVER (PARTITION BY depth > 0, owner_id ORDER BY id), id LIMIT %s"
)


_UNDER_WAY = (
    "SELECT r.depth > 0, t.owner_id, COUNT(*) FROM django_q_ormq q JOIN runs_run r ON r.queue_id = q.id"
    " JOIN runs_thread t ON t.id = r.thread_id WHERE q.key = %s AND q.lock > %s AND r.status = 'running'"
    " GROUP BY r.depth > 0, t.owner_id"
)
# What `pick` does, over all rows: those under way come first in their owner's count, so they push back what waits.
# A pending run whose row is locked is not due yet: it is in nobody's way.
_PLACES = (
    "SELECT run_id, place FROM (SELECT run_id, ROW_NUMBER() OVER (ORDER BY depth = 0, nth, id) AS place FROM"
    " (SELECT q.id, r.id AS run_id, COALESCE(r.depth, 0) AS depth, q.lock, ROW_NUMBER() OVER"
    " (PARTITION BY COALESCE(r.depth, 0) > 0, t.owner_id ORDER BY CASE WHEN q.lock > %s THEN 0 ELSE 1 END, q.id) AS nth"
    " FROM django_q_ormq q LEFT JOIN runs_run r ON r.queue_id = q.id LEFT JOIN runs_thread t ON t.id = r.thread_id"
    " WHERE q.key = %s AND NOT (q.lock > %s AND COALESCE(r.status, '') = 'pending')) AS ranked"
    " WHERE lock <= %s) AS placed"
)


def places(run_ids: Sequence[UUID], now: datetime) -> dict[UUID, int]:
    """The place in line, from 1, of each of these runs that may be claimed, as `pick` serves them."""
    if not run_ids:
        return {}
    wanted = ", ".join(["%s"] * len(run_ids))
    at = connection.ops.adapt_datetimefield_value(now)
    with connection.cursor() as cursor:
        statement = f"{_PLACES} WHERE run_id IN ({wanted})"
        cursor.execute(statement, [at, Conf.CLUSTER_NAME, at, at, *(key_of(run_id) for run_id in run_ids)])
        return {as_uuid(run_id): place for run_id, place in cursor.fetchall()}


def candidates(now: datetime, *, window: int = _WINDOW) -> list[Candidate]:
    """At most `window` rows that may be taken, plain tasks included: those that `pick` would choose from all."""
    rows = _candidates(_OLDEST, now, window)
    return rows if len(rows) < window else _candidates(_FAIREST, now, window)


def _candidates(statement: str, now: datetime, window: int) -> list[Candidate]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [Conf.CLUSTER_NAME, connection.ops.adapt_datetimefield_value(now), window])
        return [
            Candidate(queue_id, run_id and as_uuid(run_id), owner, depth)
            for queue_id, run_id, owner, depth in cursor.fetchall()
        ]


Lane = tuple[bool, int | None]  # a child, whose


def under_way(now: datetime) -> dict[Lane, int]:
    """How many runs of each lane workers hold at the moment."""
    with connection.cursor() as cursor:
        cursor.execute(_UNDER_WAY, [Conf.CLUSTER_NAME, connection.ops.adapt_datetimefield_value(now)])
        return {(bool(child), owner_id): count for child, owner_id, count in cursor.fetchall()}


def pick(rows: Sequence[Candidate], count: int, busy: Mapping[Lane, int] | None = None) -> list[Candidate]:
    """Whom to serve first: children before leads (a lead waits for them), then one of each owner in turn, oldest first.

    What an owner has under way (`busy`) counts as served: otherwise, with one free place at a time, the person who
    asked first would be first again and again.

    >>> [c.queue_id for c in pick([Candidate(1, None, 7, 0), Candidate(2, None, 7, 0), Candidate(3, None, 8, 0)], 2)]
    [1, 3]
    """
    ranks: dict[Lane, int] = defaultdict(int, busy or {})
    ordered = []
    for row in rows:
        lane = (row.depth > 0, row.owner_id)
        ordered.append(((row.depth == 0, ranks[lane], row.queue_id), row))
        ranks[lane] += 1
    return [row for _key, row in sorted(ordered, key=lambda pair: pair[0])[:count]]


def is_contended(rows: Sequence[Candidate], count: int) -> bool:
    """Whether somebody has to wait for somebody else, so that what is under way matters."""
    return 0 < count < len(rows) and len({row.owner_id for row in rows}) > 1


def fair_share(waiting: int, *, workers: int, free: int, most: int) -> int:
    """How many of `waiting` rows one of `workers` processes takes at once, so that work spreads over all of them."""
    return max(0, min(free, most, -(-waiting // max(1, workers))))


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows that were leased, by id, and their runs: (run, its thread, its parent's thread, queue id)."""

    payloads: dict[int, str]
    runs: list[tuple[UUID, UUID, UUID | None, int]]


def take(queue_ids: Iterable[int], now: datetime, lease_until: datetime) -> Taken:
    """Lease rows that are still free, skipping those another worker is taking."""
    wanted = list(queue_ids)
    with rows.in_one_go():
        leased, behind = _lease(wanted, now, lease_until), _runs_behind(wanted)
    with leased, behind:
        payloads = dict(leased.fetchall())
        found = [row for row in behind.fetchall() if row[3] in payloads]
    return Taken(
        payloads, [(as_uuid(run), as_uuid(own), upper and as_uuid(upper), at) for run, own, upper, at in found]
    )


def _lease(wanted: Sequence[int], now: datetime, lease_until: datetime) -> Any:
    skip = " FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    until, at = (connection.ops.adapt_datetimefield_value(moment) for moment in (lease_until, now))
    cursor = connection.cursor()
    cursor.execute(
        "UPDATE django_q_ormq SET lock = %s WHERE id IN (SELECT id FROM django_q_ormq"
        f" WHERE id IN ({', '.join(['%s'] * len(wanted))}) AND lock <= %s{skip}) RETURNING id, payload",
        [until, *wanted, at],
    )
    return cursor


def _runs_behind(wanted: Sequence[int]) -> Any:
    cursor = connection.cursor()
    cursor.execute(
        "SELECT r.id, r.thread_id, p.thread_id, r.queue_id"
        " FROM runs_run r LEFT JOIN runs_run p ON p.id = r.parent_id"
        f" WHERE r.queue_id IN ({', '.join(['%s'] * len(wanted))})",
        wanted,
    )
    return cursor


def renew(held: Mapping[int, datetime], lease_until: datetime) -> set[int]:
    """Extend leases. `held` maps queue ids to the lock value as it was stored. Returns the ids that are still ours."""
    by_lock: dict[datetime, list[int]] = defaultdict(list)
    for queue_id, lock in held.items():
        by_lock[lock].append(queue_id)
    for lock, queue_ids in by_lock.items():
        OrmQ.objects.filter(pk__in=queue_ids, lock=lock).update(lock=lease_until)
    return set(OrmQ.objects.filter(pk__in=list(held), lock=lease_until).values_list("pk", flat=True))


def lock(run_ids: Sequence[UUID]) -> None:
    """Wait until no worker is taking these runs' rows and keep them from being taken in this transaction."""
    if run_ids and connection.features.has_select_for_update:
        held = Run.objects.filter(pk__in=run_ids, queue_id__isnull=False).values_list("queue_id", flat=True)
        list(OrmQ.objects.select_for_update().filter(pk__in=list(held)).order_by("pk").values_list("pk"))


def release(queue_ids: Iterable[int], now: datetime) -> None:
    """Give rows back at once, so that another worker need not wait for the lease to end."""
    OrmQ.objects.filter(pk__in=list(queue_ids)).update(lock=now)


def shorten_leases(now: datetime, *, longest_seconds: float) -> int:
    """Bring leases back that lie further ahead than any reaches: the clock was set back since they were given.

    Without this, rows that nobody holds could not be taken until the clock has caught up. Rows of runs that are due
    later are no leases. Returns how many there were.
    """
    later = Run.objects.filter(queue_id__isnull=False, status="pending", due_at__gt=now).values("queue_id")
    beyond = OrmQ.objects.filter(key=Conf.CLUSTER_NAME, lock__gt=now + timedelta(seconds=longest_seconds))
    beyond = beyond.exclude(pk__in=later)
    return beyond.update(lock=now + timedelta(seconds=longest_seconds / 2))


def postpone(queue_id: int, now: datetime, seconds: float) -> None:
    OrmQ.objects.filter(pk=queue_id).update(lock=now + timedelta(seconds=seconds))


def lapsed(queue_id: int | None, now: datetime) -> bool:
    """Whether nobody holds a lease on this row any more; so it is for one that is gone."""
    return queue_id is None or not OrmQ.objects.filter(pk=queue_id, lock__gt=now).exists()


def exists(queue_id: int | None) -> bool:
    return queue_id is not None and OrmQ.objects.filter(pk=queue_id).exists()


def known_ids() -> QuerySet[OrmQ, int]:
    """The ids of all rows, for use as a subquery."""
    return OrmQ.objects.values_list("pk", flat=True)


def drop(queue_ids: Iterable[int]) -> None:
    gone = list(queue_ids)
    if gone:
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM django_q_ormq WHERE id IN ({', '.join(['%s'] * len(gone))})", gone)


def prune_results(before: datetime, *, dry_run: bool) -> int:
    """Remove django-q2's result rows of tasks that went well, and of runs, whose own rows say more; how many."""
    old = Task.objects.filter(Q(success=True) | Q(func=RUN_FUNCTION), stopped__lt=before)
    return old.count() if dry_run else old.delete()[0]


def schedule_daily(function: str, name: str) -> None:
    """Have workers call a function once a day. A schedule of this name that is there already stays as it is."""
    Schedule.objects.get_or_create(
        name=name,
        defaults={"func": function, "schedule_type": Schedule.DAILY, "repeats": -1, "cluster": Conf.CLUSTER_NAME},
    )


def record(runs: Iterable[Run]) -> None:
    """Leave django-q2's own result row for ended runs, so that its admin pages tell the truth."""
    insert(
        Task,
        [
            Task(
                id=run.pk.hex,
                name=f"run-{run.pk}",
                func=RUN_FUNCTION,
                started=run.started_at or run.created_at,
                stopped=run.ended_at,
                success=run.status == "success",
                result=run.error or None,
                attempt_count=max(1, run.attempt),
                cluster=Conf.CLUSTER_NAME,
            )
            for run in runs
        ],
        unless_there=True,
    )
