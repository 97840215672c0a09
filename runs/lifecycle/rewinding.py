"""Going back to an earlier checkpoint of a thread: what comes next grows from there. See runs.history.

`take_back` and `roll_back` are for verbs that do this among other things: a run that begins at a checkpoint, a run that
is rolled back as it ends. They do not ask whether something is active; `Rewind` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from runs import history
from runs.errors import CheckpointNotFound, ThreadBusy, ThreadNotFound
from runs.event_types import ThreadRewound
from runs.graphs import checkpoints, returning
from runs.history import Cut

if TYPE_CHECKING:
    from runs.ledger import Ledger
    from runs.models import GraphCheckpoint, Run, Thread

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
    undone = returning.undo(thread.pk, run.pk)
    newest = checkpoints.find(thread.pk, "", None)
    values = None if newest is None else returning.values_at(newest)
    if own or undone:
        to = min(own) - 1 if own else thread.last_seq
        _rewind(ledger, thread, Cut(thread.last_seq + 1, to, forget=True, run_id=run.pk), values)


def check_graphs_checkpoint(thread: Thread, run: Run) -> GraphCheckpoint | None:
    """The checkpoint that a run of a graph is to begin at, if at one. Raises CheckpointNotFound."""
    wanted = returning.begins_at(run)
    found = checkpoints.find(thread.pk, "", wanted) if wanted else None
    if wanted and found is None:
        raise CheckpointNotFound(thread.pk)
    return found


def follow_graph(ledger: Ledger, thread: Thread, run: Run) -> None:
    """A locked thread goes back to the checkpoint that a run of a graph begins at, as `take_back` does for an agent's.

    Nothing happens when the run begins at none, or no message came after it. Raises CheckpointNotFound.
    """
    found = check_graphs_checkpoint(thread, run)
    if found is None:
        return
    to = returning.last_message_at(found, ledger.cuts_of(thread))
    if any(seq > to for seq in ledger.messages_of(thread, left_at=None)):
        _rewind(ledger, thread, Cut(thread.last_seq + 1, to, run_id=run.pk), returning.values_at(found))


def _rewind(ledger: Ledger, thread: Thread, cut: Cut, values: dict[str, Any] | None = None) -> int:
    """`values` are those of a graph's state; without them, what the thread's own updates say."""
    line = history.line_to(cut.to, ledger.cuts_of(thread))
    values = history.values_on(line, ledger.updates_of(thread)) if values is None else values
    fact = ThreadRewound(to=cut.to, line=line, values=values, forget=cut.forget or None)
    ledger.append(thread, cut.run_id or NO_RUN, [fact])
    ledger.rewind(thread, cut)
    ledger.set_values(thread, values)
    return cut.at


def _is_checkpoint(ledger: Ledger, thread: Thread, seq: int) -> bool:
    if seq == 0 or ledger.messages_of(thread, seq=seq):
        return True
    return any(seq == known for known, _values in ledger.updates_of(thread))
