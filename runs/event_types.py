"""The facts a thread's log may hold. Each is a frozen value; `payload` is what the event row stores as JSON.

The same rows feed chat, admin, API, SSE and replay, so a field added here is added everywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from runs.history import Line


class EventType(StrEnum):
    MESSAGE = "message"  # data: the Message's own JSON {"type": "human"|"ai"|"tool", "id", "content", …}
    DELTA = "delta"
    RUN_QUEUED = "run.queued"
    RUN_STARTED = "run.started"
    RUN_NOTED = "run.noted"
    RUN_WAITING = "run.waiting"
    RUN_STEERED = "run.steered"
    RUN_STEER_READ = "run.steer_read"
    RUN_ENDED = "run.ended"
    STATE_UPDATED = "state.updated"
    THREAD_REWOUND = "thread.rewound"
    GRAPH_PART = "graph.part"
    TASK_CREATED = "task.created"
    TASK_STARTED = "task.started"
    TASK_STEP = "task.step"
    TASK_STEERED = "task.steered"
    TASK_STEER_READ = "task.steer_read"
    TASK_ENDED = "task.ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Base of all facts but `message`, whose payload is the Message row itself."""

    type: ClassVar[EventType]

    def payload(self) -> dict[str, Any]:
        """The fields as JSON values; those that say nothing (None, "" or {}) are left out."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "", {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta(Fact):
    """A further piece of the reply that is being written. The `message` with this id replaces all its deltas.

    `restarts`: the model is asked again after a failure, so the pieces before this one are no part of the reply.
    """

    type: ClassVar[EventType] = EventType.DELTA
    id: str
    text: str
    restarts: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQueued(Fact):
    type: ClassVar[EventType] = EventType.RUN_QUEUED
    agent: str
    behind: str | None = None  # the run it waits behind; then `text` is what it will say when its turn comes
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Fact):
    """Claimed by a worker. `attempt` above 1: continued after its worker was lost or handed it over."""

    type: ClassVar[EventType] = EventType.RUN_STARTED
    attempt: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNoted(Fact):
    """In what the run differs from what one might expect. Only written when there is something to say."""

    type: ClassVar[EventType] = EventType.RUN_NOTED
    delegation_off: str = ""  # a DelegationOff: why it may call nobody
    clamped: dict[str, list[int]] = field(default_factory=dict)  # {"max_total_subagents": [asked, given]}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWaiting(Fact):
    """What the run waits for now: children, slot, person, model, retry, or None when it goes on."""

    type: ClassVar[EventType] = EventType.RUN_WAITING
    waiting_for: Literal["children", "slot", "person", "model", "retry"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteered(Fact):
    """Somebody sent the run a message while it works. It becomes part of the transcript when the run picks it up."""

    type: ClassVar[EventType] = EventType.RUN_STEERED
    id: str  # of the message
    text: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteerRead(Fact):
    """The receipt: the message goes into the model call with this number; none when the run ended without it."""

    type: ClassVar[EventType] = EventType.RUN_STEER_READ
    id: str
    turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Fact):
    type: ClassVar[EventType] = EventType.RUN_ENDED
    status: str  # a RunStatus
    stop_reason: str = ""
    error_code: str = ""
    error: str = ""
    detail: dict[str, Any] = field(default_factory=dict)  # {"limit", "layer"} of what stopped it
    why: str = ""  # runs.explain in English; screens say it in the reader's language from the other fields
    model_calls: int = 0
    total_tokens: int | None = None
    cancelled_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdated(Fact):
    """A program set values of the thread's state that are no messages. A checkpoint like each message."""

    type: ClassVar[EventType] = EventType.STATE_UPDATED
    values: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRewound(Fact):
    """What comes after goes on from the checkpoint `to`; the rows stay, see runs.history."""

    type: ClassVar[EventType] = EventType.THREAD_REWOUND
    to: int
    line: Line  # the numbers of what the state is made of from now on
    values: dict[str, Any] = field(default_factory=dict)  # of the state at `to`, besides the messages
    forget: bool | None = None  # True: a rollback of the run that the row names


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPart(Fact):
    """A part of a graph's stream, for who streams the run. `ns` is empty for the graph itself, else the path within it.

    `values` only names its checkpoint, whose row holds the state; `interrupts` holds what was asked; `updates`,
    `custom`, `messages` (of a graph within), `tasks`, `checkpoints` and `debug` hold LangGraph's data as JSON.
    """

    type: ClassVar[EventType] = EventType.GRAPH_PART
    mode: str
    ns: str = ""
    data: Any = None
    checkpoint: str = ""
    values: dict[str, Any] | None = None  # of the state besides its messages, where they have changed

    def payload(self) -> dict[str, Any]:
        if self.checkpoint:
            changed = {} if self.values is None else {"values": self.values}
            return {"mode": self.mode, "checkpoint": self.checkpoint, **changed}
        return {"mode": self.mode, "data": self.data, **({"ns": self.ns} if self.ns else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreated(Fact):
    """A delegation was accepted: written to the parent's thread, with everything a card needs."""

    type: ClassVar[EventType] = EventType.TASK_CREATED
    task: str  # the child run's id
    thread: str  # the child's thread
    tool_call_id: str
    subagent: str
    display_name: str
    title: str
    prompt: str  # bounded; the whole prompt is the child thread's first message
    model: str
    max_turns: int
    timeout_seconds: int
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted(Fact):
    type: ClassVar[EventType] = EventType.TASK_STARTED
    task: str
    attempt: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStep(Fact):
    """Something a child did, as one line. `tool` steps come twice: when the call is made and when it is answered."""

    type: ClassVar[EventType] = EventType.TASK_STEP
    task: str
    turn: int  # the child's model calls so far
    kind: Literal["text", "tool", "tool_result"]
    call: str = ""  # tool call id, for tool and tool_result
    tool: str = ""
    text: str = ""  # the words, or the salient argument, or the first line of the result; bounded
    failed: bool = False
    total_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSteered(Fact):
    """A child's RunSteered, for its card."""

    type: ClassVar[EventType] = EventType.TASK_STEERED
    task: str
    id: str
    text: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSteerRead(Fact):
    """A child's RunSteerRead, for its card."""

    type: ClassVar[EventType] = EventType.TASK_STEER_READ
    task: str
    id: str
    turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded(Fact):
    type: ClassVar[EventType] = EventType.TASK_ENDED
    task: str
    status: str  # a RunStatus
    stop_reason: str = ""
    error_code: str = ""
    error: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    result: str = ""  # a bounded brief; the whole text is the child thread's last message
    model_calls: int = 0
    total_tokens: int | None = None
    seconds: float | None = None  # from first execution to end
    cancelled_by: str = ""
