"""Applying verbs: each is a frozen value that checks first, then changes rows in the ledger.

A verb's own refusal (a RunsError) is raised before it changes anything, so it never spoils its neighbours in a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from django.db import OperationalError, connection

from runs.errors import RunsError
from runs.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

Result = TypeVar("Result")
_DEADLOCK_TRIES = 4


class Verb(Protocol):
    """A verb that may end a run which a worker is just claiming also says `locks_queue_row = True`.

    One that ends a run, as a rule, says whose line it asks for: `line_of`, a thread's id.
    """

    def thread_ids(self) -> Iterable[UUID]: ...
    def run_ids(self) -> Iterable[UUID]: ...
    def apply(self, ledger: Ledger) -> Any: ...


def commit(verbs: Sequence[Verb]) -> list[Any]:
    """Apply verbs in order in one transaction. A verb's own refusal (RunsError) stands in its place in the list."""
    return again_after_deadlock(lambda: _commit(verbs))


def again_after_deadlock(transact: Callable[[], Result]) -> Result:
    """Do a whole transaction again when the database gave it up because of a deadlock: it left nothing behind.

    An end takes a run's queue row last and a claim takes it first, so some wait for each other by design.
    """
    for _try in range(_DEADLOCK_TRIES - 1):
        try:
            return transact()
        except OperationalError as fault:
            if connection.in_atomic_block or not _deadlock(fault):
                raise
    return transact()


def _deadlock(fault: OperationalError) -> bool:
    return getattr(fault.__cause__, "sqlstate", None) in {"40P01", "40001"}


def _commit(verbs: Sequence[Verb]) -> list[Any]:
    threads = {i for verb in verbs for i in verb.thread_ids()}
    runs = {i for verb in verbs for i in verb.run_ids()}
    queued = {i for verb in verbs if getattr(verb, "locks_queue_row", False) for i in verb.run_ids()}
    lines = {verb.line_of for verb in verbs if hasattr(verb, "line_of")}
    owners: set[int] = {getattr(verb, "owner_id", 0) for verb in verbs if getattr(verb, "most_pending", 0) != 0}
    results: list[Any] = []
    with Ledger(thread_ids=threads, run_ids=runs, queue_rows_of=queued, lines_of=lines, pending_of=owners) as ledger:
        for verb in verbs:
            try:
                results.append(verb.apply(ledger))
            except RunsError as refusal:
                results.append(refusal)
    return results


def commit_one(verb: Verb) -> Any:
    """Apply one verb; its refusal is raised."""
    (result,) = commit([verb])
    if isinstance(result, RunsError):
        raise result
    return result


@dataclass(frozen=True, slots=True)
class Held:
    """A claimed run as its executor knows it."""

    run_id: UUID
    thread_id: UUID
    fence: int
    parent_thread_id: UUID | None = None

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.thread_id,) if self.parent_thread_id is None else (self.thread_id, self.parent_thread_id)
