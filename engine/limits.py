"""The numbers a run may not exceed, resolved and clamped before it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimit:
    """A token budget in force. `layer` is the path of the setting that won, shown when the budget ends a run."""

    max_tokens: int
    warn_threshold: float = 0.7  # fraction of max_tokens
    layer: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimit:
    """When repeated tool calls are warned about and stopped. Source: product.md §5.2 and §13, `loop_detection`."""

    warn_threshold: int = 3  # the same set of calls this often within the window
    hard_limit: int = 5
    window_size: int = 20  # sets of calls
    tool_freq_warn: int = 30  # calls of one tool, whatever its arguments
    tool_freq_hard_limit: int = 50
    tool_freq_overrides: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # tool → (warn, hard limit)

    def frequency_of(self, tool: str) -> tuple[int, int]:
        return self.tool_freq_overrides.get(tool, (self.tool_freq_warn, self.tool_freq_hard_limit))

    @property
    def frequency_window(self) -> int:
        """Of so many last calls the frequency is counted, so that every limit in play can be reached."""
        return max(self.tool_freq_hard_limit, *(hard for _warn, hard in self.tool_freq_overrides.values()), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A part of a history. Of a trigger the first size that is reached counts; for keeping, the one that is set."""

    tokens: int | None = None
    messages: int | None = None
    fraction: float | None = None  # of the model's context


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRule:
    """When a history is summarised and how much of its end stays as it is. Source: product.md §13, `summarization`."""

    trigger: Extent
    keep: Extent
    model: str = ""  # a name in the model registry; empty: the run's own


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
    loops: LoopLimit | None = None
    summary: SummaryRule | None = None


def limits_from_json(stored: Mapping[str, Any]) -> Limits:
    """The inverse of dataclasses.asdict, also after a way through JSON; what an older version left out is off."""
    readers: dict[str, Callable[[Mapping[str, Any]], object]] = {
        "tokens": lambda one: TokenLimit(**one),
        "tree_tokens": lambda one: TokenLimit(**one),
        "loops": _loop_limit,
        "summary": _summary_rule,
    }
    nested = {name: read(stored[name]) if stored.get(name) else None for name, read in readers.items()}
    return Limits(**{**stored, **nested})


def _loop_limit(stored: Mapping[str, Any]) -> LoopLimit:
    overrides = {tool: (warn, hard) for tool, (warn, hard) in stored.get("tool_freq_overrides", {}).items()}
    return LoopLimit(**{**stored, "tool_freq_overrides": overrides})


def _summary_rule(stored: Mapping[str, Any]) -> SummaryRule:
    extents = {name: Extent(**stored[name]) for name in ("trigger", "keep")}
    return SummaryRule(**{**stored, **extents})


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
