"""Going on with what a child had begun: a new run on its thread, for which nobody waits but the person who asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runs.errors import Fenced, ThreadBusy
from runs.event_types import RunQueued, TaskCreated
from runs.lifecycle.start import BRIEF_LENGTH, Start
from runs.models import Run, new_id
from runs.statuses import RunStatus, ThreadStatus
from runs.transcript import last_answer_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from runs.ledger import Ledger
    from runs.transcript import WireMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueChild:
    """Queue a run that goes on from the transcript of an ended child, with a card of its own on the lead's thread.

    Result: the Run. Raises ThreadBusy when something runs on the child's thread.
    """

    old: Run
    parent_thread_id: UUID
    message: WireMessage
    definition: Mapping[str, Any]
    card: Mapping[str, Any]  # the fields of TaskCreated that the definition says
    run_id: UUID = field(default_factory=new_id)

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.old.thread_id, self.parent_thread_id)

    def run_ids(self) -> tuple[UUID, ...]:
        return ()

    def apply(self, ledger: Ledger) -> Run:
        old, thread = self.old, ledger.threads.get(self.old.thread_id)
        upper = ledger.threads.get(self.parent_thread_id)
        if thread is None or upper is None or old.parent_id is None:
            raise Fenced(f"run {old.pk} was deleted meanwhile")
        if ledger.line_of(thread):
            raise ThreadBusy(thread.pk)
        run = Run(
            id=self.run_id,
            thread_id=thread.pk,
            agent=old.agent,
            parent_id=old.parent_id,
            root_id=old.root_id,
            depth=old.depth,
            continues_id=old.pk,
            tool_call_id=f"continue:{self.run_id}",
            title=old.title,
            definition=dict(self.definition),
            model=str(self.definition.get("model", old.model)),
            created_at=ledger.now,
            base_seq=thread.last_seq,
        )
        ledger.add_run(run)
        ledger.append(thread, run.pk, [RunQueued(agent=run.agent), self.message])
        thread.status = ThreadStatus.BUSY
        ledger.make_claimable(run)
        fact = TaskCreated(
            task=str(run.pk),
            thread=str(thread.pk),
            tool_call_id=run.tool_call_id or "",
            subagent=run.agent,
            title=run.title,
            prompt=str(self.message["content"])[:BRIEF_LENGTH],
            model=run.model,
            **self.card,
        )
        ledger.append(upper, old.parent_id, [fact])
        return run


def tell_lead(ledger: Ledger, run: Run, answer: str) -> None:
    """A continued child has its answer: the lead gets it as a message, for the call that asked has its result."""
    upper = ledger.parent_thread_of(run)
    if run.continues_id is None or run.parent_id is None or upper is None or run.status != RunStatus.SUCCESS:
        return
    lead = Run.objects.only("agent", "options").get(pk=run.parent_id)
    text = (
        f'The subagent {run.agent} went on with "{run.title}" after it had been stopped, and answers:\n\n'
        f"{answer or last_answer_of(run.thread_id)}\n\nUse this in place of its earlier answer."
    )
    message: WireMessage = {"type": "human", "id": str(new_id()), "content": text, "task": str(run.pk)}
    Start(
        thread_id=upper.pk,
        owner_id=upper.owner_id,
        agent=lead.agent,
        messages=[message],
        options=lead.options,
        most_pending=0,  # it is not a person who asks
    ).apply(ledger)
