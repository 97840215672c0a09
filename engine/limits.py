"""The numbers a run may not exceed, resolved and clamped before it starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimit:
    """A token budget in force. `layer` is the path of the setting that won, shown when the budget ends a run."""

    max_tokens: int
    warn_threshold: float = 0.7  # fraction of max_tokens
    layer: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run. None means that this guard is off."""

    max_turns: int  # model calls
    timeout_seconds: int  # from the first moment of execution
    max_turns_layer: str = "default"
    timeout_layer: str = "default"
    tokens: TokenLimit | None = None
    tree_tokens: TokenLimit | None = None  # over the lead and all its children
    max_concurrent_subagents: int = 0  # per reply; 0: this run may not delegate
    max_total_subagents: int = 0  # per run


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
