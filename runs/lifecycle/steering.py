"""Verbs of a message that reaches a run while it works: sent by a person, picked up before the next model call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from engine.text import clean
from runs.errors import BadInput, NotSteerable, RunNotFound
from runs.event_types import RunSteered, RunSteerRead, TaskSteered, TaskSteerRead
from runs.models import Run, new_id
from runs.statuses import ENDED, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from runs.event_types import Fact
    from runs.ledger import Ledger
    from runs.lifecycle.commit import Held
    from runs.transcript import WireMessage

MOST_UNREAD = 20
_SHOWN_CHARACTERS = 2_000  # of a message on a card; the whole text enters the transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    """Leave a message for a run that has its turn. Result: the message's id.

    The row keeps it until the run picks it up, whichever worker has the run then. Raises NotSteerable for a run
    that has ended, is being stopped or waits behind another, RunNotFound, and BadInput when too many lie there unread.
    """

    run_id: UUID
    lock_threads: tuple[UUID, ...]  # the run's thread and, for a child, its parent's thread
    text: str
    by: str = ""
    message_id: UUID = field(default_factory=new_id)

    def thread_ids(self) -> tuple[UUID, ...]:
        return self.lock_threads

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.run_id,)

    def apply(self, ledger: Ledger) -> UUID:
        run = ledger.runs.get(self.run_id)
        if run is None:
            raise RunNotFound(self.run_id)
        if reason := _deaf(ledger, run):
            raise NotSteerable(run.pk, reason)
        if len(run.steers) >= MOST_UNREAD:
            raise BadInput("text", _("%(count)d messages wait to be picked up already") % {"count": MOST_UNREAD})
        message = {"type": "human", "id": str(self.message_id), "content": clean(self.text), "steer": True}
        ledger.change(run, steers=[*run.steers, message])
        shown: dict[str, Any] = {"id": message["id"], "text": clean(self.text[:_SHOWN_CHARACTERS]), "by": self.by}
        _tell(ledger, run, [RunSteered(**shown)], [TaskSteered(task=str(run.pk), **shown)])
        return self.message_id


def _deaf(ledger: Ledger, run: Run) -> str:
    if run.status in ENDED:
        return "ended"
    if run.cancel_requested:
        return "stopping"
    return "waiting" if run.status == RunStatus.PENDING and not ledger.has_its_turn(run) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSteers:
    """Move what was left for a running run into its transcript, with receipts. Result: the messages."""

    held: Held
    turn: int  # the number of the model call that will see them

    def thread_ids(self) -> tuple[UUID, ...]:
        return self.held.thread_ids()

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.held.run_id,)

    def apply(self, ledger: Ledger) -> list[WireMessage]:
        run = ledger.held(self.held.run_id, self.held.fence)
        messages: list[WireMessage] = list(run.steers)
        ledger.append(ledger.threads[run.thread_id], run.pk, messages)
        _acknowledge(ledger, run, self.turn)
        return messages


def leave_unread(ledger: Ledger, run: Run) -> None:
    """The run ends: what it has not picked up gets a receipt that says so."""
    if run.steers:
        _acknowledge(ledger, run, None)


def _acknowledge(ledger: Ledger, run: Run, turn: int | None) -> None:
    ids = [str(message["id"]) for message in run.steers]
    own = [RunSteerRead(id=message_id, turn=turn) for message_id in ids]
    _tell(ledger, run, own, [TaskSteerRead(task=str(run.pk), id=message_id, turn=turn) for message_id in ids])
    ledger.change(run, steers=[])


def _tell(ledger: Ledger, run: Run, own: Sequence[Fact], upper: Sequence[Fact]) -> None:
    ledger.append(ledger.threads[run.thread_id], run.pk, own)
    parent_thread = ledger.parent_thread_of(run)
    if parent_thread is not None and run.parent_id is not None:
        ledger.append(parent_thread, run.parent_id, upper)
