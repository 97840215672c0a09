"""Verbs of a run under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runs.errors import IllegalMove
from runs.event_types import Fact, RunQueued, RunWaiting
from runs.statuses import RunStatus, WaitingFor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from runs.ledger import Entry, Ledger
    from runs.lifecycle.commit import Held


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Entries and counters of a running run. Raises Fenced when the run is no longer held.

    Result: whether a message waits that the run should pick up before its next model call.
    """

    held: Held
    entries: Sequence[Entry] = ()
    parent_entries: Sequence[Fact] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)

    def thread_ids(self) -> tuple[UUID, ...]:
        return self.held.thread_ids() if self.parent_entries else (self.held.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.held.run_id,)

    def apply(self, ledger: Ledger) -> bool:
        run = ledger.held(self.held.run_id, self.held.fence)
        if "status" in self.changes or "fence" in self.changes:
            raise IllegalMove("progress never changes status or fence")
        ledger.append(ledger.threads[run.thread_id], run.pk, self.entries)
        upper = ledger.threads.get(self.held.parent_thread_id) if self.held.parent_thread_id else None
        if self.parent_entries and upper is not None and run.parent_id is not None:
            ledger.append(upper, run.parent_id, self.parent_entries)
        if self.changes:
            ledger.change(run, **self.changes)
        return bool(run.steers)


def waiting(held: Held, waiting_for: WaitingFor) -> Progress:
    """The run says what it waits for; NOTHING when it goes on."""
    fact = RunWaiting(waiting_for=waiting_for.value or None)  # type: ignore[arg-type]
    return Progress(held=held, entries=[fact], changes={"waiting_for": waiting_for.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Give a running run back, because this worker stops: another continues it from the transcript at once."""

    held: Held

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.held.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.held.run_id,)

    def apply(self, ledger: Ledger) -> int | None:
        run = ledger.held(self.held.run_id, self.held.fence)
        ledger.change(run, status=RunStatus.PENDING.value, waiting_for="")
        ledger.append(ledger.threads[run.thread_id], run.pk, [RunQueued(agent=run.agent)])
        return run.queue_id
