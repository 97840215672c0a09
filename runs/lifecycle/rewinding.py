"""Going back to an earlier checkpoint of a thread: what comes next grows from there. See runs.history.

`take_back` and `roll_back` are for verbs that do this among other things: a run that begins at a checkpoint, a run that
is rolled back as it ends. They do not ask whether something is active; `Rewind` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from runs import history
from runs.errors import CheckpointNotFound, ThreadBusy, ThreadNotFound
from runs.event_types import ThreadRewound
from runs.history import Cut

if TYPE_CHECKING:
    from runs.ledger import Ledger
    from runs.models import Run, Thread

NO_RUN = UUID(int=0)  # the run of a row that a program wrote without one


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """Take a thread back to the checkpoint with number `to`, or to the empty state with 0.

    What it leaves stays in the history and can be gone back to; with `forget` it cannot. Result: the number of the
    event that says so. Raises ThreadNotFound, CheckpointNotFound, and ThreadBusy while a run is active.
    """

    thread_id: UUID
    owner_id: int
    to: int
    forget: bool = False

    @property
    def line_of(self) -> UUID:
        return self.thread_id

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return ()

    def apply(self, ledger: Ledger) -> int:
        thread = idle_thread(ledger, self.thread_id, self.owner_id)
        return take_back(ledger, thread, self.to, forget=self.forget)


def idle_thread(ledger: Ledger, thread_id: UUID, owner_id: int) -> Thread:
    """The locked thread, if it is this owner's and nothing is active on it. Raises ThreadNotFound and ThreadBusy."""
    thread = ledger.threads.get(thread_id)
    if thread is None or thread.owner_id != owner_id:
        raise ThreadNotFound(thread_id)
    if ledger.line_of(thread):
        raise ThreadBusy(thread_id)
    return thread


def take_back(ledger: Ledger, thread: Thread, to: int, *, run_id: UUID = NO_RUN, forget: bool = False) -> int:
    """A locked thread goes on from the checkpoint with number `to`; what is appended next comes after it.

    `run_id` is the run for whose sake. Raises CheckpointNotFound for a number that is none, or that a rollback took.
    Result: as `Rewind`.
    """
    check_checkpoint(ledger, thread, to)
    return _rewind(ledger, thread, Cut(thread.last_seq + 1, to, forget, run_id))


def check_checkpoint(ledger: Ledger, thread: Thread, seq: int) -> None:
    """Raise CheckpointNotFound for a number that is none in a locked thread, or that a rollback took."""
    if not _is_checkpoint(ledger, thread, seq) or history.forgotten([seq], ledger.cuts_of(thread)):
        raise CheckpointNotFound(thread.pk)


def roll_back(ledger: Ledger, thread: Thread, run: Run) -> None:
    """A run that has ended leaves no trace in its thread's state and history: all is as before its first message.

    If it had begun at an earlier checkpoint, that is undone too. The run's own row is the caller's business.
    """
    own = ledger.messages_of(thread, run_id=run.pk)
    own += [cut.at for cut in ledger.cuts_of(thread) if cut.run_id == run.pk and not cut.forget]
    if own:
        _rewind(ledger, thread, Cut(thread.last_seq + 1, min(own) - 1, forget=True, run_id=run.pk))


def _rewind(ledger: Ledger, thread: Thread, cut: Cut) -> int:
    line = history.line_to(cut.to, ledger.cuts_of(thread))
    values = history.values_on(line, ledger.updates_of(thread))
    fact = ThreadRewound(to=cut.to, line=line, values=values, forget=cut.forget or None)
    ledger.append(thread, cut.run_id or NO_RUN, [fact])
    ledger.rewind(thread, cut)
    ledger.set_values(thread, values)
    return cut.at


def _is_checkpoint(ledger: Ledger, thread: Thread, seq: int) -> bool:
    if seq == 0 or ledger.messages_of(thread, seq=seq):
        return True
    return any(seq == known for known, _values in ledger.updates_of(thread))
