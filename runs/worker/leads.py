"""What a lead runs with: the agent as it is at the run's first attempt, and what the request made of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engine.config.budget import TokenBudget, effective_budget
from engine.config.guards import loop_limit, summary_rule
from engine.errors import EngineError, UnknownModel
from engine.limits import Limits, TokenLimit, clamp
from engine.reasons import reason_of
from engine.tools.names import BASH
from engine.tools.registry import tool_names
from runs.agents import reach
from runs.options import MAX_TOTAL
from runs.raising import with_raised
from runs.statuses import DelegationOff, ErrorCode
from subagents import registry
from subagents.errors import UnknownAgent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.models.registry import ModelRegistry
    from runs.models import Run
    from subagents.leads import LeadDefinition
    from subagents.registry import Registry


class CannotRun(Exception):
    """A run that cannot begin: a stable code and the sentence for the person."""

    def __init__(self, code: ErrorCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def lead_of(run: Run, now: Registry) -> LeadDefinition:
    """The agent as it is now. Raises CannotRun for one that was deleted or switched off since the message was sent."""
    try:
        return now.lead(run.agent)
    except UnknownAgent as fault:
        graph = now.graphs.entry(run.agent)
        if graph is not None and (why := now.graphs.error_of(graph)):
            raise CannotRun(ErrorCode.GRAPH_BROKEN, why) from fault
        raise CannotRun(ErrorCode.AGENT_UNKNOWN, reason_of(fault)) from fault


def lead_definition(run: Run, lead: LeadDefinition, now: Registry, models: ModelRegistry) -> dict[str, Any]:
    """Everything of the lead that the run keeps, as JSON values. Raises CannotRun."""
    offered = tool_names() if registry.bash_gate(now.config).ok else tuple(n for n in tool_names() if n != BASH)
    tools = offered if lead.tools is None else tuple(name for name in offered if name in lead.tools)
    return {
        "agent": lead.name,
        "display_name": str(lead.display_name),
        "version": lead.version,
        "system_prompt": lead.system_prompt,
        "model": resolved(models, run.options.get("model_name"), lead.model),
        "tools": list(tools),
        "skills": None if lead.skills is None else list(lead.skills),
        "thinking": run.options.get("thinking_enabled", True) is not False,
        "limits": asdict(limits_of(run.options, now)),
    }


def permitted(run: Run, lead: LeadDefinition, now: Registry) -> tuple[tuple[str, ...], DelegationOff | None]:
    """Whom the run may call, and why nobody when that is so."""
    return reach(lead, now, asked=run.options.get("subagent_enabled", True) is not False)


def clamped(run: Run, limits: Mapping[str, Any]) -> dict[str, list[int]]:
    """Which of the numbers a request asked for were changed: {"max_concurrent_subagents": [asked, given]}."""
    noted = dict(run.metadata.get("clamped", {}))
    for name in ("max_concurrent_subagents", "max_total_subagents"):
        if name in run.options and run.options[name] != limits[name]:
            # What the request's own bounds have changed already was asked for as something else still.
            asked = noted[name][0] if name in noted else run.options[name]
            noted[name] = [asked, limits[name]]
    return noted


def narrowed(own: Sequence[str] | None, lead_skills: Sequence[str] | None) -> list[str] | None:
    """The skills of a subagent: its own list within its lead's. None: no bound, all enabled ones."""
    if own is None or lead_skills is None:
        bound = lead_skills if own is None else own
        return None if bound is None else list(bound)
    return [name for name in own if name in lead_skills]


def limits_of(options: Mapping[str, Any], now: Registry) -> Limits:
    config = now.config
    concurrent = options.get("max_concurrent_subagents", config.subagents.max_concurrent)
    total = options.get("max_total_subagents", config.subagents.max_total_per_run)
    budget = config.runs.token_budget
    limits = Limits(
        max_turns=config.runs.max_turns,
        max_turns_layer="runs.max_turns",
        timeout_seconds=config.runs.timeout_seconds,
        timeout_layer="runs.timeout_seconds",
        tokens=_budget(config),
        tree_tokens=tree_limit(budget),
        max_concurrent_subagents=clamp(concurrent, 1, config.subagents.max_concurrent_limit),
        max_total_subagents=clamp(total, 1, MAX_TOTAL),
        loops=loop_limit(config.loop_detection),
        summary=summary_rule(config.summarization),
    )
    return with_raised(limits, options.get("raised") or {})


def _budget(config: Any) -> TokenLimit | None:
    budget = effective_budget(config.subagents.token_budget, None, summarization_enabled=config.summarization.enabled)
    written = config.subagents.token_budget is not None and config.subagents.token_budget.max_tokens is not None
    return token_limit(budget, "subagents.token_budget.max_tokens" if written else "default")


def token_limit(budget: TokenBudget, layer: str) -> TokenLimit | None:
    """A budget as a limit; None when it is switched off. `layer` is the setting that says max_tokens."""
    if not budget.enabled:
        return None
    return TokenLimit(max_tokens=budget.max_tokens, warn_threshold=budget.warn_threshold, layer=layer)


def tree_limit(budget: Any) -> TokenLimit | None:
    """`runs.token_budget` as a limit over lead and children; None when unset or switched off."""
    if budget is None or budget.enabled is False or not budget.max_tokens:
        return None
    return TokenLimit(
        max_tokens=budget.max_tokens, warn_threshold=budget.warn_threshold or 0.7, layer="runs.token_budget"
    )


def resolved(models: ModelRegistry, wanted: str | None, own: str | None) -> str:
    """The model of a run, by name. Raises CannotRun."""
    try:
        return models.resolve(wanted, own)
    except UnknownModel as fault:
        raise CannotRun(ErrorCode.MODEL_UNKNOWN, reason_of(fault)) from fault
    except EngineError as fault:
        raise CannotRun(ErrorCode.MODEL_UNAVAILABLE, reason_of(fault)) from fault
