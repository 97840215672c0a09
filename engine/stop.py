"""Why a run ended early although nothing broke: the guard that capped it. Names are the source document's own."""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    """A cap: the guard that ended a run cleanly before the model was finished."""

    TOKEN_CAPPED = "token_capped"
    TURN_CAPPED = "turn_capped"
    LOOP_CAPPED = "loop_capped"


class SubagentStatus(StrEnum):
    """What a delegation's tool result says in `subagent_status`."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
