"""Applying verbs: each is a frozen value that checks first, then changes rows in the ledger.

A verb's own refusal (a RunsError) is raised before it changes anything, so it never spoils its neighbours in a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from runs.errors import RunsError
from runs.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID


class Verb(Protocol):
    def thread_ids(self) -> Iterable[UUID]: ...
    def run_ids(self) -> Iterable[UUID]: ...
    def apply(self, ledger: Ledger) -> Any: ...


def commit(verbs: Sequence[Verb]) -> list[Any]:
    """Apply verbs in order in one transaction. A verb's own refusal (RunsError) stands in its place in the list."""
    threads = {i for verb in verbs for i in verb.thread_ids()}
    runs = {i for verb in verbs for i in verb.run_ids()}
    results: list[Any] = []
    with Ledger(thread_ids=threads, run_ids=runs) as ledger:
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
