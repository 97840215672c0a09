"""Run statuses, the legal moves between them, and their names in other vocabularies. Values and rules only."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from engine.stop import SubagentStatus


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


class WaitingFor(StrEnum):
    """What a running run that holds no slot waits for."""

    NOTHING = ""
    CHILDREN = "children"
    SLOT = "slot"
    PERSON = "person"
    MODEL = "model"  # which takes no more calls at the same time
    RETRY = "retry"  # of a model call that failed


class ThreadStatus(StrEnum):
    """The LangGraph wire's words for a thread."""

    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


class ErrorCode(StrEnum):
    """Stable codes of `Run.error_code`; the sentence stands in `Run.error`."""

    WORKER_LOST = "worker_lost"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    MODEL_UNKNOWN = "model_unknown"
    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_UNREACHABLE = "model_unreachable"
    MODEL_REFUSED_KEY = "model_refused_key"
    MODEL_RATE_LIMITED = "model_rate_limited"
    MODEL_SERVER_ERROR = "model_server_error"
    MODEL_STREAM_CUT = "model_stream_cut"
    MODEL_BAD_REQUEST = "model_bad_request"
    MODEL_CONTEXT_OVERFLOW = "model_context_overflow"
    MODEL_QUOTA_USED_UP = "model_quota_used_up"
    MODEL_REFUSAL = "model_refusal"
    MODEL_RESTING = "model_resting"
    MODEL_STALLED = "model_stalled"
    MODEL_UNREADABLE = "model_unreadable"
    MODEL_FAILED = "model_failed"
    NO_ANSWER = "no_answer"
    AGENT_UNKNOWN = "agent_unknown"
    CHECKPOINT_GONE = "checkpoint_gone"
    GRAPH_BROKEN = "graph_broken"  # it cannot be loaded
    GRAPH_FAILED = "graph_failed"  # one of its nodes raised
    INTERNAL = "internal"


class DelegationOff(StrEnum):
    """Why a lead may call nobody, the strongest reason first. Stable codes: metadata `delegation_off` of the run."""

    SCOPE_NONE = "scope_none"
    AGENT = "agent"
    REQUEST = "request"
    SCOPE_EMPTY = "scope_empty"
    NOBODY = "nobody"


ACTIVE: Final = frozenset({RunStatus.PENDING, RunStatus.RUNNING})
ENDED: Final = frozenset(RunStatus) - ACTIVE
MOVES: Final[dict[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.PENDING: ENDED - {RunStatus.SUCCESS} | {RunStatus.RUNNING},
    # Back to pending: handed over on a deploy, or its worker was lost.
    RunStatus.RUNNING: frozenset({RunStatus.PENDING, RunStatus.RUNNING}) | ENDED,
    **dict.fromkeys(ENDED, frozenset()),
}

TO_SUBAGENT: Final[dict[RunStatus, SubagentStatus]] = {
    RunStatus.SUCCESS: SubagentStatus.COMPLETED,
    RunStatus.ERROR: SubagentStatus.FAILED,
    RunStatus.TIMEOUT: SubagentStatus.TIMED_OUT,
    RunStatus.INTERRUPTED: SubagentStatus.CANCELLED,
    RunStatus.CANCELLED: SubagentStatus.CANCELLED,
}
TO_LANGGRAPH: Final[dict[RunStatus, str]] = {
    RunStatus.PENDING: "pending",
    RunStatus.RUNNING: "running",
    RunStatus.SUCCESS: "success",
    RunStatus.ERROR: "error",
    RunStatus.TIMEOUT: "timeout",
    RunStatus.INTERRUPTED: "interrupted",
    RunStatus.CANCELLED: "interrupted",  # the LangGraph vocabulary has no word for cancelled
}


def may_move(source: RunStatus, target: RunStatus) -> bool:
    return target in MOVES[source]
