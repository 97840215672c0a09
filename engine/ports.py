"""What the engine asks of the platform. The platform implements these Protocols and hands them over in RunContext.

Nothing here imports LangChain: the platform may name these types without loading the agent stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.limits import Limits
    from engine.sandbox.base import Sandbox
    from engine.sandbox.workspace import Workspace
    from engine.stop import StopReason, SubagentStatus


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


@dataclass(slots=True, kw_only=True)
class Counters:
    """What guards remember about one run. Rebuilt from the transcript when another worker continues it."""

    model_calls: int = 0
    tokens: int = 0
    tokens_estimated: bool = False
    children_started: int = 0
    token_warning_given: bool = False
    stop_reason: StopReason | None = None  # set by the guard that capped the run
    stop_detail: dict[str, str | int] = field(default_factory=dict)  # {"limit": …, "layer": …} of that guard


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
    labels: Mapping[str, str] = field(default_factory=dict)  # for log lines and traces
