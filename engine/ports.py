"""What the engine asks of the platform. The platform implements these Protocols and hands them over in RunContext.

Nothing here imports LangChain: the platform may name these types without loading the agent stack.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from engine.loops import LoopTracker, Repetition
from engine.stop import StopReason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from engine.limits import Limits
    from engine.sandbox.base import Sandbox
    from engine.sandbox.workspace import Workspace
    from engine.stop import SubagentStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more model calls. None: the provider reported nothing, which is not zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    estimated: bool = False

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCall:
    """One `task` call of a lead: what to do and who shall do it. Idempotent by (run, tool_call_id)."""

    tool_call_id: str
    description: str  # three to five words, the card's title
    prompt: str
    subagent_type: str  # as the model wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildResult:
    """What came of a delegation. `run_id` is None when nothing was started (a refusal)."""

    status: SubagentStatus
    text: str  # the subagent's full answer, or the sentence that says why there is none
    run_id: str | None = None
    thread_id: str | None = None
    subagent: str = ""  # the definition's name
    stop_reason: StopReason | None = None
    model: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterEntry:
    """A subagent that this run may call."""

    name: str
    description: str


class Delegate(Protocol):
    """Starts children and waits for them."""

    async def run_child(self, call: ChildCall) -> ChildResult:
        """Start the child (or find the one this call started before), wait for its end, return what came of it.

        A name that is not permitted or no longer exists gives a FAILED result without run_id whose text names
        the permitted subagents; it never raises for that. asyncio.CancelledError passes through.
        """
        ...

    async def tree_tokens(self) -> int:
        """Tokens that the whole run tree has used so far, as stored."""
        ...


class Pause(StrEnum):
    """Why a run that could think waits."""

    MODEL = "model"  # its model takes no more calls at the same time
    RETRY = "retry"  # its model failed and is asked again in a moment


class Pauses(Protocol):
    """Lets the platform show that a run waits, and use its place meanwhile."""

    def __call__(self, pause: Pause) -> AbstractAsyncContextManager[None]: ...


def _no_pause(pause: Pause) -> AbstractAsyncContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What stands for the beginning of a history in requests. Stored once; the history itself stays as it is.

    Positions count the messages of the history, which only ever grows: they mean the same to every worker.
    """

    text: str
    covered: int  # so many messages from the beginning are what it stands for
    seen: int  # so many messages there were when it was made
    model: str = ""  # empty: no model wrote it, the messages are left out
    usage: Usage | None = None


@dataclass(slots=True, kw_only=True)
class Counters:
    """What guards remember about one run. Rebuilt from what is stored when another worker continues it."""

    model_calls: int = 0
    tokens: int = 0
    tokens_estimated: bool = False
    children_started: int = 0
    token_warning_given: bool = False
    loops: LoopTracker = field(default_factory=LoopTracker)
    repetitions: list[Repetition] = field(default_factory=list)  # to warn of in the next request
    summary_failed_tokens: int = 0  # size of the request for which no summary could be made; 0: none failed
    stop_reason: StopReason | None = None  # set by the guard that capped the run
    stop_detail: dict[str, str | int] = field(default_factory=dict)  # {"limit": …, "layer": …} of that guard

    def take_in(self, found: Sequence[Repetition]) -> bool:
        """Keep what is to be warned of, and the end of the run if a hard limit is among it: then True."""
        self.repetitions = [one for one in found if not one.stops]
        final = next((one for one in found if one.stops), None)
        if final is None or self.stop_reason is not None:
            return False
        self.stop_reason = StopReason.LOOP_CAPPED
        self.stop_detail = {
            "limit": final.limit,
            "used": final.count,
            "layer": final.layer,
            "tool": final.tool,
            "kind": final.kind.value,
        }
        return True


@dataclass(slots=True, kw_only=True)
class RunContext:
    """Everything that differs from run to run. One compiled agent serves all runs; this comes with each."""

    run_id: str
    thread_id: str
    agent_name: str
    is_subagent: bool
    system_prompt: str
    limits: Limits
    workspace: Workspace
    sandbox: Sandbox
    delegate: Delegate
    roster: tuple[RosterEntry, ...] = ()  # empty: nobody may be called
    delegation_enabled: bool = False
    counters: Counters = field(default_factory=Counters)
    summary: Summary | None = None  # the newest one of the thread
    pause: Pauses = _no_pause
    labels: Mapping[str, str] = field(default_factory=dict)  # for log lines and traces
