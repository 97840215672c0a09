"""What a subagent runs with: within its lead's bounds, or by itself when a program calls it as an assistant."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from engine.config.guards import loop_limit, summary_rule
from engine.limits import Limits
from engine.text import clean_json
from engine.tools.registry import allowed_tools, tool_names
from runs.raising import with_raised
from runs.worker.leads import narrowed, resolved, token_limit, tree_limit
from subagents import registry
from subagents.errors import UnknownAgent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.limits import TokenLimit
    from engine.models.registry import ModelRegistry
    from runs.models import Run
    from subagents.catalogue import Entry
    from subagents.registry import Registry


def subagent_limits(entry: Entry, now: Registry, *, tree_tokens: TokenLimit | None) -> Limits:
    effective = entry.effective
    return Limits(
        max_turns=effective.max_turns,
        max_turns_layer=entry.layers["max_turns"][0].name,
        timeout_seconds=effective.timeout_seconds,
        timeout_layer=entry.layers["timeout_seconds"][0].name,
        tokens=token_limit(effective.budget, entry.layers["token_budget.max_tokens"][0].name),
        tree_tokens=tree_tokens,
        loops=loop_limit(now.config.loop_detection),
        summary=summary_rule(now.config.summarization),
    )


def subagent_definition(
    entry: Entry,
    now: Registry,
    limits: Limits,
    *,
    model: str,
    lead_tools: Sequence[str],
    lead_skills: Sequence[str] | None,
) -> dict[str, Any]:
    """Everything of the subagent that the run keeps, as JSON values."""
    effective = entry.effective
    choice = allowed_tools(
        effective.tools,
        effective.disallowed_tools,
        lead_tools=lead_tools,
        bash_available=registry.bash_gate(now.config).ok,
    )
    return {
        "agent": entry.name,
        "display_name": entry.definition.display_name,
        "source": entry.source.value,
        "version": entry.definition.version,
        "system_prompt": entry.definition.system_prompt,
        "model": model,
        "tools": list(choice.names),
        "skills": narrowed(effective.skills, lead_skills),
        "thinking": _thinks(entry.name, now),
        "limits": asdict(limits),
    }


def _thinks(name: str, now: Registry) -> bool:
    """Off for subagents unless it is set: thinking at length is for whoever plans, and costs every child's time."""
    section = now.config.subagents
    override = section.agents.get(name)
    own = override.thinking_enabled if override else None
    return section.thinking_enabled if own is None else own


def subagent_called_directly(run: Run, now: Registry) -> Entry | None:
    """The registry's entry that a run without a lead is for; None when it is for a lead."""
    if run.depth:
        return None
    try:
        now.lead(run.agent)
    except UnknownAgent:
        entry = now.catalogue.runnable.get(run.agent)
        return entry if entry is not None and entry.works_here else None
    return None


def direct_definition(run: Run, entry: Entry, now: Registry, models: ModelRegistry) -> dict[str, Any]:
    """What a subagent runs with when no lead bounds it: the deployment's tools and skills. Raises CannotRun."""
    limits = subagent_limits(entry, now, tree_tokens=tree_limit(now.config.runs.token_budget))
    definition = subagent_definition(
        entry,
        now,
        with_raised(limits, run.options.get("raised") or {}),
        model=resolved(models, run.options.get("model_name"), entry.effective.model),
        lead_tools=tool_names(),
        lead_skills=None,
    )
    return cast("dict[str, Any]", clean_json({**definition, "called_directly": True}))
