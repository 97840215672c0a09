"""Which token budget a subagent runs under, and who said so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from engine.config.schema import TokenBudgetConfig

Value = TypeVar("Value", bool, int, float)

DEFAULT_MAX_TOKENS = 2_000_000
DEFAULT_MAX_TOKENS_WITH_SUMMARIZATION = 1_000_000
DEFAULT_WARN_THRESHOLD = 0.7


class BudgetLayer(StrEnum):
    """Who sets a field of a budget. Declaration order is strength: the earlier layer wins."""

    OVERRIDE = "override"  # subagents.agents.<name>.token_budget
    DEFINITION = "definition"  # the subagent's own token_budget
    GLOBAL = "global"  # subagents.token_budget
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """A complete budget of one run. `warn_threshold` is the fraction of `max_tokens` that warns."""

    enabled: bool
    max_tokens: int
    warn_threshold: float
    enabled_layer: BudgetLayer
    max_tokens_layer: BudgetLayer
    warn_threshold_layer: BudgetLayer


def effective_budget(
    global_budget: TokenBudgetConfig | None,
    override_budget: TokenBudgetConfig | None,
    *,
    summarization_enabled: bool,
    definition_budget: TokenBudgetConfig | None = None,
) -> TokenBudget:
    """Inherit a budget field by field: override, the definition's own, global, default.

    A layer that names only `max_tokens` leaves the guard as the layers below have it. Only the
    default of `max_tokens` depends on summarisation; a number somebody wrote never does.
    Source: product.md §2.2.
    """
    written = (
        (BudgetLayer.OVERRIDE, override_budget),
        (BudgetLayer.DEFINITION, definition_budget),
        (BudgetLayer.GLOBAL, global_budget),
    )

    def strongest(field: str, default: Value) -> tuple[Value, BudgetLayer]:
        for layer, budget in written:
            value = getattr(budget, field, None)
            if value is not None:
                return value, layer
        return default, BudgetLayer.DEFAULT

    default_max = DEFAULT_MAX_TOKENS_WITH_SUMMARIZATION if summarization_enabled else DEFAULT_MAX_TOKENS
    enabled, enabled_layer = strongest("enabled", default=True)
    max_tokens, max_tokens_layer = strongest("max_tokens", default_max)
    warn_threshold, warn_threshold_layer = strongest("warn_threshold", DEFAULT_WARN_THRESHOLD)
    return TokenBudget(
        enabled=enabled,
        max_tokens=max_tokens,
        warn_threshold=warn_threshold,
        enabled_layer=enabled_layer,
        max_tokens_layer=max_tokens_layer,
        warn_threshold_layer=warn_threshold_layer,
    )
