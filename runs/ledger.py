"""One transaction over some threads and runs: rows locked in one order, log entries numbered, all written at the end.

Every process locks queue rows first where it needs them, then owners, threads and runs, each sorted by id, so two
ledgers cannot wait for each other in a ring.
Rows are changed in memory while the locks are held; each run is written back only where its status and fence are
still those that were read, so a write that starts or ends a run is a compare-and-set even where a database takes no
row locks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from runs import clock, history, log, queue, rows, transcript
from runs.doorbell import Ring, ring_at_commit
from runs.errors import Fenced, IllegalMove
from runs.event_types import EventType, Fact
from runs.models import Event, Message, Run, Thread
from runs.statuses import ACTIVE, RunStatus, may_move
from runs.transcript import WireMessage, from_json, to_json, to_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db import models

    from runs.history import Cut, Line

Entry = Fact | WireMessage
_OWNERS = 0x5275 << 48  # sets these advisory locks apart from others; below it is room for a person's id
_LONG_RUN_FIELDS = ("definition", "options", "metadata")
_LONG_THREAD_FIELDS = ("values",)
_KEEPING_FIELDS = ("ttl_minutes", "ttl_strategy")
THREAD_FIELDS = ("last_seq", "status", "title", "metadata", "updated_at")


class Ledger:
    """See the module's text. Use as a context manager; what `append` and friends collected is written on exit."""

    def __init__(
        self,
        *,
        thread_ids: Iterable[UUID] = (),
        run_ids: Iterable[UUID] = (),
        queue_rows_of: Iterable[UUID] = (),
        lines_of: Iterable[UUID] = (),
        transcripts_of: Iterable[UUID] = (),
        pending_of: Iterable[int] = (),
        whole_runs: bool = False,
    ) -> None:
        self._wanted_threads = sorted(set(thread_ids))
        self._wanted_runs = sorted(set(run_ids))
        self._wanted_queue_rows = sorted(set(queue_rows_of))
        self._wanted_lines = sorted(set(lines_of))
        self._wanted_transcripts = sorted(set(transcripts_of))
        self._wanted_owners = sorted(set(pending_of))
        # What a run runs with is long and seldom needed here; a field that is left out is read when it is asked for.
        self._left_out = () if whole_runs else _LONG_RUN_FIELDS
        self._transaction = transaction.atomic(savepoint=False)

    def __enter__(self) -> Ledger:
        self._transaction.__enter__()
        try:
            # Waiting for a lock is where deadlocks and lost connections show; no __exit__ follows a failed __enter__.
            queue.lock(self._wanted_queue_rows)
            clock.look()
            self.now: datetime = clock.now()
            self.threads: dict[UUID, Thread]
            self.runs: dict[UUID, Run]
            with rows.in_one_go():
                _lock_owners(self._wanted_owners)
                locked = rows.ask(
                    rows.Wanted(Thread, self._wanted_threads, _LONG_THREAD_FIELDS),
                    rows.Wanted(Run, self._wanted_runs, self._left_out),
                )
                # After the threads are locked: nobody appends to them any more.
                lines = _ask_for_lines(self._wanted_lines)
                transcripts = transcript.ask(self._wanted_transcripts)
                pending = _ask_for_pending(self._wanted_owners)
            self.threads, self.runs = locked()
            self._lines, self.transcripts, self._pending = lines(), transcripts(), pending()
        except BaseException as fault:
            self._transaction.__exit__(type(fault), fault, fault.__traceback__)
            raise
        self._read = {pk: (run.status, run.fence) for pk, run in self.runs.items()}
        self._new_threads: list[Thread] = []
        self._new_runs: list[Run] = []
        self._events: list[Event] = []
        self._messages: list[Message] = []
        self._others: list[models.Model] = []
        self._touched: dict[UUID, Thread] = {}
        self._changed: dict[UUID, set[str]] = {}
        self._queue: dict[UUID, datetime] = {}
        self._children: dict[UUID, dict[str, UUID]] = {}
        self._cuts: dict[UUID, list[Cut]] = {}
        self._rewound: list[tuple[UUID, Cut, int, Line]] = []
        self._values: dict[UUID, Thread] = {}
        self._kept: dict[UUID, Thread] = {}
        self._ended: list[Run] = []
        self._cancels: set[UUID] = set()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is None:
            try:
                self._write()
            except BaseException as fault:
                self._transaction.__exit__(type(fault), fault, fault.__traceback__)
                raise
        self._transaction.__exit__(kind, *rest)

    # --- what verbs call -----------------------------------------------------------------------------------------
    def held(self, run_id: UUID, fence: int) -> Run:
        """The running run, if `fence` is still the one it was claimed with. Raises Fenced otherwise."""
        run = self.runs.get(run_id)
        if run is None or run.fence != fence or run.status != RunStatus.RUNNING:
            raise Fenced(f"run {run_id} is no longer held with this fence")
        return run

    def parent_thread_of(self, run: Run) -> Thread | None:
        """The locked thread of the run that waits for this one; None for a lead, and where it was not asked for."""
        return None if run.parent_id is None else self.threads.get(_thread_of(run.parent_id))

    def line_of(self, thread: Thread) -> list[Run]:
        """The active runs of a locked thread as this ledger leaves them, in the order of their turns."""
        # The database does not know yet what verbs before this one in the same commit have changed.
        active = self._lines[thread.pk] if thread.pk in self._lines else _ask_for_lines([thread.pk])()[thread.pk]
        unknown = [pk for pk in active if pk not in self.runs]
        for pk, run in rows.locked(rows.Wanted(Run, sorted(unknown)))[0].items() if unknown else ():
            self.runs[pk] = run
            self._read[pk] = (run.status, run.fence)
        line = [run for run in self.runs.values() if run.thread_id == thread.pk and run.status in ACTIVE]
        return sorted(line, key=lambda run: (run.created_at, run.pk))

    def children_of(self, parent_id: UUID) -> dict[str, UUID]:
        """The children of a locked run by their tool call, those that this ledger adds included."""
        if parent_id not in self._children:
            with connection.cursor() as cursor:
                statement = "SELECT tool_call_id, id FROM runs_run WHERE parent_id = %s"
                cursor.execute(statement, [rows.key_of(parent_id)])
                self._children[parent_id] = {call: rows.as_uuid(run_id) for call, run_id in cursor.fetchall()}
        added = {run.tool_call_id: run.pk for run in self._new_runs if run.parent_id == parent_id and run.tool_call_id}
        return {**self._children[parent_id], **added}

    def pending_of(self, owner_id: int) -> int:
        """How many leads' runs of a person, asked for at the start, wait to be executed; with those this ledger adds.

        Nobody else adds one until this ledger has closed.
        """
        added = sum(run.depth == 0 and self.threads[run.thread_id].owner_id == owner_id for run in self._new_runs)
        return self._pending.get(owner_id, 0) + added

    def has_its_turn(self, run: Run) -> bool:
        """Whether a worker may claim the run or holds it already; a run that waits behind another has no queue row."""
        return run.queue_id is not None or run.pk in self._queue

    def append(self, thread: Thread, run_id: UUID, entries: Sequence[Entry]) -> None:
        """Number entries in the thread's log; a wire message also goes to the transcript under the same number."""
        if not entries:
            return
        for entry in entries:
            thread.last_seq += 1
            place = {"thread_id": thread.pk, "seq": thread.last_seq, "run_id": run_id}
            if isinstance(entry, Fact):
                self._events.append(Event(type=entry.type, at=self.now, data=to_json(entry.payload()), **place))
            else:
                self._events.append(Event(type=EventType.MESSAGE, at=self.now, data="", **place))
                self._messages.append(Message(data=to_row(entry), **place))
        self.touch(thread)

    def cuts_of(self, thread: Thread) -> list[Cut]:
        """The rewinds of a locked thread, oldest first, those that this ledger adds included."""
        if thread.pk not in self._cuts:
            self._cuts[thread.pk] = log.cuts_of(thread.pk)
        return self._cuts[thread.pk]

    def updates_of(self, thread: Thread) -> list[tuple[int, dict[str, Any]]]:
        """As `log.updates_of`, those that this ledger adds included."""
        own = [row for row in self._events if row.thread_id == thread.pk and row.type == EventType.STATE_UPDATED]
        return [*log.updates_of(thread.pk), *((row.seq, from_json(row.data).get("values", {})) for row in own)]

    def messages_of(self, thread: Thread, **which: Any) -> list[int]:
        """The numbers of a locked thread's messages with these fields, those that this ledger adds included."""
        own = [row for row in self._messages if row.thread_id == thread.pk]
        added = [row.seq for row in own if all(getattr(row, name) == value for name, value in which.items())]
        return [*Message.objects.filter(thread_id=thread.pk, **which).values_list("seq", flat=True), *added]

    def rewind(self, thread: Thread, cut: Cut) -> None:
        """A locked thread's state is that of an earlier checkpoint from now on. See runs.lifecycle.rewinding."""
        cuts = self.cuts_of(thread)
        line = history.line_to(cut.to, cuts)
        kept = history.common_end(history.line_to(cut.at, cuts), line)
        self._rewound.append((thread.pk, cut, kept, history.past(kept, line)))
        cuts.append(cut)

    def set_values(self, thread: Thread, values: dict[str, Any]) -> None:
        """What the state of a locked thread holds besides its messages."""
        thread.values = values
        self._values[thread.pk] = thread

    def keep(self, thread: Thread, minutes: float, strategy: str) -> None:
        """How long a locked thread is kept without a change, and what happens then: see runs.keeping."""
        thread.ttl_minutes, thread.ttl_strategy = minutes, strategy
        self._kept[thread.pk] = thread

    def touch(self, thread: Thread) -> None:
        thread.updated_at = self.now
        self._touched[thread.pk] = thread

    def change(self, run: Run, **changes: Any) -> None:
        """Set fields of a run. A status goes through the table of moves."""
        status = changes.get("status")
        if status is not None and not may_move(RunStatus(run.status), RunStatus(status)):
            raise IllegalMove(f"run {run.pk}: {run.status} → {status}")
        for name, value in changes.items():
            setattr(run, name, value)
        if run.pk in self._read:
            self._changed.setdefault(run.pk, set()).update(changes)

    def add_thread(self, thread: Thread) -> None:
        self._new_threads.append(thread)
        self.threads[thread.pk] = thread

    def add_run(self, run: Run) -> None:
        self._new_runs.append(run)
        self.runs[run.pk] = run

    def add(self, row: models.Model) -> None:
        """A new row of another kind, written with everything else."""
        self._others.append(row)

    def make_claimable(self, run: Run, held_until: datetime | None = None) -> None:
        """Give the run its queue row when the ledger closes; with a lease when somebody holds the run already."""
        self._queue[run.pk] = held_until or self.now

    def ended(self, run: Run) -> None:
        """The run's queue row goes and django-q2's result row comes when the ledger closes."""
        self._ended.append(run)

    def ring_cancel(self, run_id: UUID) -> None:
        self._cancels.add(run_id)

    # --- writing -------------------------------------------------------------------------------------------------
    def _write(self) -> None:
        self._add_to_queue()
        with rows.in_one_go() as matched:
            rows.add(Thread, self._new_threads)
            rows.add(Run, sorted(self._new_runs, key=lambda run: run.depth))
            self._leave_queue()
            expected = self._write_runs(matched)
            new = {thread.pk for thread in self._new_threads}
            rows.change(Thread, [t for pk, t in sorted(self._touched.items()) if pk not in new], THREAD_FIELDS)
            rows.add(Event, self._events)
            rows.add(Message, self._messages)
            rows.change(Thread, [thread for _pk, thread in sorted(self._values.items())], _LONG_THREAD_FIELDS)
            rows.change(Thread, [thread for _pk, thread in sorted(self._kept.items())], _KEEPING_FIELDS)
            for thread_id, cut, kept, brought_back in self._rewound:
                rows.take_off_line(thread_id, cut.at, kept)
                rows.put_on_line(thread_id, brought_back)
            for other in self._others:
                rows.add(type(other), [other])
            ring_at_commit(
                Ring(
                    threads=frozenset(self._touched),
                    queue=any(held_until <= self.now for held_until in self._queue.values()),
                    cancels=frozenset(self._cancels),
                )
            )
        if matched.total() != expected:
            raise Fenced("a run was changed by somebody else")

    def _add_to_queue(self) -> None:
        if self._queue:
            for run_id, queue_id in queue.add(self._queue).items():
                self.change(self.runs[run_id], queue_id=queue_id)

    def _leave_queue(self) -> None:
        if self._ended:
            queue.drop(run.queue_id for run in self._ended if run.queue_id is not None)
            queue.record(self._ended)
            for run in self._ended:
                self.change(run, queue_id=None)

    def _write_runs(self, matched: rows.Matched) -> int:
        """Write changed runs back, each only where status and fence are those that were read. How many there are."""
        by_fields: dict[tuple[str, ...], list[Run]] = {}
        for pk, changed in sorted(self._changed.items()):
            by_fields.setdefault(tuple(sorted(changed)), []).append(self.runs[pk])
        for names, runs in by_fields.items():
            guards = [self._read[run.pk] for run in runs]
            rows.change(Run, runs, names, guard_fields=("status", "fence"), guards=guards, matched=matched)
        return len(self._changed)


def _ask_for_lines(thread_ids: Sequence[UUID]) -> Callable[[], dict[UUID, list[UUID]]]:
    """The active runs of each thread; the answer may be read later, see rows.in_one_go."""
    if not thread_ids:
        return dict
    places = ", ".join(["%s"] * len(thread_ids))
    cursor = connection.cursor()
    cursor.execute(
        f"SELECT thread_id, id FROM runs_run WHERE thread_id IN ({places}) AND status IN ('pending', 'running')",
        [rows.key_of(thread_id) for thread_id in thread_ids],
    )

    def read() -> dict[UUID, list[UUID]]:
        lines: dict[UUID, list[UUID]] = {thread_id: [] for thread_id in thread_ids}
        with cursor:
            for thread_id, run_id in cursor.fetchall():
                lines[rows.as_uuid(thread_id)].append(rows.as_uuid(run_id))
        return lines

    return read


@lru_cache(maxsize=4096)
def _thread_of(run_id: UUID) -> UUID:
    """A run's thread never changes."""
    thread_id: UUID = Run.objects.values_list("thread_id", flat=True).get(pk=run_id)
    return thread_id


def _lock_owners(owner_ids: Sequence[int]) -> None:
    """One ledger at a time adds runs of a person, so that what it counts stays true.

    An advisory lock, which writes nothing and goes with the statements after it. SQLite has one writer anyway.
    """
    if connection.vendor == "postgresql":
        for owner_id in owner_ids:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_OWNERS | owner_id])


def _ask_for_pending(owner_ids: Sequence[int]) -> Callable[[], dict[int, int]]:
    """How many leads' runs of each person wait to be executed; the answer may be read later, see rows.in_one_go."""
    if not owner_ids:
        return dict
    places = ", ".join(["%s"] * len(owner_ids))
    cursor = connection.cursor()
    cursor.execute(
        # From the index of active runs, which are few: SQLite would walk through all threads of the person. It takes a
        # partial index only when the index's own condition is there word for word, and a cross join in the given order.
        "SELECT t.owner_id, COUNT(*) FROM runs_run r CROSS JOIN runs_thread t WHERE t.id = r.thread_id"
        " AND r.status IN ('pending', 'running') AND r.status = 'pending' AND r.depth = 0"
        f" AND t.owner_id IN ({places}) GROUP BY t.owner_id",
        list(owner_ids),
    )

    def read() -> dict[int, int]:
        with cursor:
            return dict(cursor.fetchall())

    return read
