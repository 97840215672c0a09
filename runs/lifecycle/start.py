"""Verbs that bring threads and runs into being."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from engine.text import clean, clean_json
from runs.errors import ThreadBusy, ThreadNotFound, TooManyPending
from runs.event_types import RunQueued, RunStarted, TaskCreated, TaskStarted
from runs.lifecycle.rewinding import check_checkpoint, check_graphs_checkpoint, follow_graph, take_back
from runs.models import Run, Thread, WebhookDelivery, new_id
from runs.statuses import RunStatus, ThreadStatus
from runs.transcript import text_of
from subagents import registry
from subagents.errors import ConfigRefused, UnknownAgent
from subagents.leads import DEFAULT_LEAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from runs.ledger import Ledger
    from runs.lifecycle.commit import Held
    from runs.transcript import WireMessage

_TITLE_LENGTH = 80
_SWITCH = "subagent_enabled"
BRIEF_LENGTH = 600  # characters of a prompt or a result that a card carries


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenThread:
    """Make a thread."""

    owner_id: int
    thread_id: UUID = field(default_factory=new_id)
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    temporary: bool = False
    ttl: tuple[float, str] | None = None  # see UpdateThread

    def thread_ids(self) -> tuple[UUID, ...]:
        return ()

    run_ids = thread_ids

    def apply(self, ledger: Ledger) -> Thread:
        thread = Thread(
            id=self.thread_id,
            owner_id=self.owner_id,
            title=clean(self.title),
            metadata=clean_json(dict(self.metadata)),
            temporary=self.temporary,
            ttl_minutes=self.ttl[0] if self.ttl else None,
            ttl_strategy=self.ttl[1] if self.ttl else "",
            created_at=ledger.now,
            updated_at=ledger.now,
        )
        ledger.add_thread(thread)
        return thread


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAlone:
    """A run on a thread made for it. Result: the Run. Raises what Start raises; then there is no thread either."""

    opened: OpenThread
    start: Start

    @property
    def owner_id(self) -> int:
        return self.start.owner_id

    @property
    def most_pending(self) -> int | None:
        return self.start.most_pending

    def thread_ids(self) -> tuple[UUID, ...]:
        return ()

    run_ids = thread_ids

    def apply(self, ledger: Ledger) -> Run:
        self.start.check_room(ledger)
        self.opened.apply(ledger)
        return self.start.apply(ledger)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Record messages and a pending run. Behind an active run it waits its turn, its messages outside the transcript.

    A thread remembers its agent (`agent` None) and whether that may delegate: what the run before it had holds.
    Result: the Run. Raises ThreadNotFound, TooManyPending, and ThreadBusy when `reject` and the thread has an active
    run, CheckpointNotFound for a `from_seq`, or a checkpoint of a graph in its options, that is none.
    """

    thread_id: UUID
    owner_id: int
    agent: str | None
    messages: Sequence[WireMessage]
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reject: bool = False
    continues_id: UUID | None = None  # the run it goes on from
    delay_seconds: float = 0  # no worker takes it before; it keeps its place in the line of its thread
    webhook: str = ""  # a URL that is told when the run has ended
    from_seq: int | None = None  # the checkpoint it begins at; None: where the thread is when its turn comes
    most_pending: int | None = None  # runs of this owner that may wait; None: as configured, 0: any number
    run_id: UUID = field(default_factory=new_id)

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return ()

    def apply(self, ledger: Ledger) -> Run:
        thread = ledger.threads.get(self.thread_id)
        if thread is None or thread.owner_id != self.owner_id:
            raise ThreadNotFound(self.thread_id)
        # A thread that says busy without an active run must not keep new messages waiting for ever.
        ahead = ledger.line_of(thread) if thread.status == ThreadStatus.BUSY else []
        if ahead and self.reject:
            raise ThreadBusy(self.thread_id)
        self.check_room(ledger)
        if self.from_seq is not None:
            check_checkpoint(ledger, thread, self.from_seq)
        agent, options = self._remembering(thread, ahead)
        run = Run(
            id=self.run_id,
            thread_id=thread.pk,
            agent=_as_defined(agent),
            root_id=self.run_id,
            input=clean_json(list(self.messages)),
            options=clean_json(options),
            metadata=clean_json(dict(self.metadata)),
            continues_id=self.continues_id,
            created_at=ledger.now,
            due_at=ledger.now + timedelta(seconds=self.delay_seconds) if self.delay_seconds else None,
            from_seq=self.from_seq,
            base_seq=thread.last_seq,
        )
        check_graphs_checkpoint(thread, run)
        ledger.add_run(run)
        if self.webhook:
            ledger.add(WebhookDelivery(run_id=run.pk, url=self.webhook, created_at=ledger.now))
        words = text_of(self.messages[-1]) if self.messages else ""
        if ahead:
            ledger.append(thread, run.pk, [RunQueued(agent=run.agent, behind=str(ahead[-1].pk), text=words)])
        else:
            ledger.append(thread, run.pk, [RunQueued(agent=run.agent)])
            its_turn(ledger, thread, run)
        if not thread.title:
            thread.title = _title(words)
        return run

    def check_room(self, ledger: Ledger) -> None:
        """Raise TooManyPending when the owner has as many runs waiting as may be."""
        most = registry.current().config.runs.max_pending_per_owner if self.most_pending is None else self.most_pending
        if most and ledger.pending_of(self.owner_id) >= most:
            raise TooManyPending(most)

    def _remembering(self, thread: Thread, ahead: Sequence[Run]) -> tuple[str, dict[str, Any]]:
        agent, options = self.agent, dict(self.options)
        if agent is not None and _SWITCH in options:
            return agent, options
        before = (ahead[-1].agent, ahead[-1].options) if ahead else _last_choices(thread)
        if before is not None:
            agent = before[0] if agent is None else agent
            if before[1].get(_SWITCH) is False:
                options.setdefault(_SWITCH, False)
        return agent or DEFAULT_LEAD, options


def _as_defined(agent: str) -> str:
    """An agent's name as it is written where it is defined: a graph's may have capitals, and its ids are made of it."""
    try:
        return agent if agent == DEFAULT_LEAD else registry.current().lead(agent).name
    except (UnknownAgent, ConfigRefused):
        return agent  # a subagent, which runs by itself, or one that is gone: its worker says so


def _last_choices(thread: Thread) -> tuple[str, dict[str, Any]] | None:
    """The agent and the options of the thread's newest run."""
    if not thread.last_seq:
        return None
    leads = Run.objects.filter(thread_id=thread.pk, parent=None).order_by("-created_at", "-pk")
    return leads.values_list("agent", "options").first()


def _title(words: str) -> str:
    line = " ".join(clean(words).split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1].rstrip() + "…"


def enter_transcript(ledger: Ledger, thread: Thread, run: Run) -> None:
    """The messages that waited with the run become part of the conversation."""
    ledger.append(thread, run.pk, run.input)
    ledger.change(run, input=[])


def its_turn(ledger: Ledger, thread: Thread, run: Run) -> None:
    """The run is the thread's active one from now on: its messages enter the transcript, a worker may claim it.

    One that is due later may be claimed from then on. One that begins at an earlier checkpoint takes the thread back to
    it. Raises CheckpointNotFound, having changed nothing.
    """
    if run.from_seq is not None:
        take_back(ledger, thread, run.from_seq, run_id=run.pk)
        ledger.change(run, from_seq=None)  # once
    follow_graph(ledger, thread, run)
    enter_transcript(ledger, thread, run)
    thread.status = ThreadStatus.BUSY
    ledger.touch(thread)
    ledger.make_claimable(run, run.due_at)


def begin_attempt(ledger: Ledger, run: Run, parent_thread_id: UUID | None, *, worker: str) -> None:
    """The run is `worker`'s from now on, under a new fence."""
    ledger.change(
        run,
        status=RunStatus.RUNNING.value,
        fence=secrets.randbits(62),
        attempt=run.attempt + 1,
        worker=worker,
        waiting_for="",
        started_at=run.started_at or ledger.now,
    )
    ledger.append(ledger.threads[run.thread_id], run.pk, [RunStarted(attempt=run.attempt, worker=worker)])
    if parent_thread_id is not None and run.parent_id is not None:
        fact = TaskStarted(task=str(run.pk), attempt=run.attempt, worker=worker)
        ledger.append(ledger.threads[parent_thread_id], run.parent_id, [fact])


@dataclass(frozen=True, slots=True, kw_only=True)
class StartChild:
    """Insert the child of a `task` call with its own thread, or find the one that this call started before.

    With `held_until` the child begins as `worker`'s own, without going through the queue; its lease ends then.
    Result: (child Run, started now?). Raises Fenced when the parent is no longer held.
    """

    parent: Held
    tool_call_id: str
    agent: str
    title: str
    prompt: str
    definition: Mapping[str, Any]
    model: str
    card: Mapping[str, Any]  # the remaining fields of TaskCreated
    run_id: UUID = field(default_factory=new_id)
    thread_id: UUID = field(default_factory=new_id)
    message_id: UUID = field(default_factory=new_id)
    worker: str = ""
    held_until: datetime | None = None

    def request(self) -> WireMessage:
        """What the child is asked: the first message of its thread."""
        return {"type": "human", "id": str(self.message_id), "content": self.prompt}

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.parent.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return (self.parent.run_id,)

    def apply(self, ledger: Ledger) -> tuple[Run, bool]:
        parent = ledger.held(self.parent.run_id, self.parent.fence)
        known = ledger.children_of(parent.pk).get(self.tool_call_id)
        if known is not None:
            return ledger.runs.get(known) or Run.objects.get(pk=known), False
        upper = ledger.threads[self.parent.thread_id]
        thread = Thread(
            id=self.thread_id,
            owner_id=upper.owner_id,
            parent_run_id=parent.pk,
            title=clean(self.title),
            status=ThreadStatus.BUSY,
            created_at=ledger.now,
            updated_at=ledger.now,
        )
        run = Run(
            id=self.run_id,
            thread_id=thread.pk,
            agent=self.agent,
            parent_id=parent.pk,
            root_id=parent.root_id,
            depth=parent.depth + 1,
            tool_call_id=self.tool_call_id,
            title=clean(self.title),
            definition=dict(self.definition),
            model=self.model,
            created_at=ledger.now,
        )
        ledger.add_thread(thread)
        ledger.add_run(run)
        ledger.append(thread, run.pk, [RunQueued(agent=run.agent), self.request()])
        ledger.make_claimable(run, self.held_until)
        fact = TaskCreated(
            task=str(run.pk),
            thread=str(thread.pk),
            tool_call_id=self.tool_call_id,
            subagent=self.agent,
            title=self.title,
            prompt=self.prompt[:BRIEF_LENGTH],
            model=self.model,
            **self.card,
        )
        ledger.append(upper, parent.pk, [fact])
        if self.held_until is not None:
            begin_attempt(ledger, run, upper.pk, worker=self.worker)
        return run, True
