"""What config.yaml says about the guards of a run, as limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.limits import Extent, LoopLimit, SummaryRule

if TYPE_CHECKING:
    from engine.config.schema import LoopDetectionConfig, SummarizationConfig, SummaryKeep, SummaryTrigger


def loop_limit(config: LoopDetectionConfig) -> LoopLimit | None:
    """The loop detection in force; None when it is switched off."""
    if not config.enabled:
        return None
    return LoopLimit(
        warn_threshold=config.warn_threshold,
        hard_limit=config.hard_limit,
        window_size=config.window_size,
        tool_freq_warn=config.tool_freq_warn,
        tool_freq_hard_limit=config.tool_freq_hard_limit,
        tool_freq_overrides={tool: (one.warn, one.hard_limit) for tool, one in config.tool_freq_overrides.items()},
    )


def summary_rule(config: SummarizationConfig) -> SummaryRule | None:
    """When histories are summarised; None when they never are."""
    if not config.enabled:
        return None
    return SummaryRule(trigger=_extent(config.trigger), keep=_extent(config.keep), model=config.model_name or "")


def _extent(section: SummaryTrigger | SummaryKeep) -> Extent:
    return Extent(tokens=section.tokens, messages=section.messages, fraction=section.fraction)
