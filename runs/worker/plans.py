"""What a run runs with: decided at its first attempt, stored on the run, and read back by every later attempt.

All of this is synchronous database and file work: call it on the database thread.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from engine.errors import EngineError
from engine.limits import limits_from_json
from engine.models.registry import ModelRegistry
from engine.ports import ChildCall, RosterEntry
from engine.prompts import lead_prompt, subagent_prompt
from engine.sandbox.workspace import Workspace
from engine.text import clean, clean_json
from engine.tools.names import BASH
from runs import clock, queue
from runs.doorbell import Ring, ring_at_commit
from runs.event_types import RunNoted
from runs.models import Run
from runs.options import OF_THE_SERVER
from runs.worker import graph_plans
from runs.worker.leads import (
    CannotRun,
    clamped,
    lead_definition,
    lead_of,
    permitted,
    resolved,
)
from runs.worker.subagents import direct_definition, subagent_called_directly, subagent_definition, subagent_limits
from runs.workspaces import workspace_folder
from subagents import registry
from subagents.definitions import Source
from subagents.leads import DEFAULT_LEAD
from subagents.matching import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from engine.limits import Limits
    from engine.sandbox.base import Sandbox
    from runs.worker.graph_plans import GraphPlan
    from subagents.catalogue import Entry
    from subagents.registry import Registry

__all__ = ["CannotRun", "Dispatch", "Plan", "dispatch_for", "plan_for"]

_TITLE_LENGTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything the executor needs to drive one run."""

    agent_name: str
    is_subagent: bool
    model: str
    models: ModelRegistry
    tools: tuple[str, ...]
    system_prompt: str
    limits: Limits
    roster: tuple[RosterEntry, ...]
    allowed: tuple[str, ...]  # the snapshot that each delegation is checked against
    delegation_enabled: bool
    workspace: Workspace
    sandbox: Sandbox
    snapshot: Mapping[str, Any]  # columns of the run to write before anything else; empty on later attempts
    noted: RunNoted | None = None  # to be logged with the snapshot
    thinking: bool = False  # whether its model shall think at length
    skills: Sequence[str] | None = None  # None: all enabled ones; a child gets no others


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """A delegation that was accepted: what StartChild stores."""

    agent: str
    title: str
    model: str
    definition: Mapping[str, Any]
    card: Mapping[str, Any]


def plan_for(run: Run, root_thread: UUID | None = None) -> Plan | GraphPlan:
    """The plan of a run. Raises CannotRun. `root_thread`, the lead's thread at the top, is looked up when not given."""
    # An agent that has just been switched off or changed counts as it is now, not as it was a second ago.
    at_once = not run.definition and run.agent != DEFAULT_LEAD
    now = registry.current(max_age=0) if at_once else registry.current()
    models = model_registry(now)
    root_thread = root_thread or _root_thread(run)
    if run.definition.get("source") == "graph":
        return graph_plans.plan_for(run, now)
    if run.definition:
        return _plan(run, run.definition, now, models, root_thread, snapshot={})
    if (entry := subagent_called_directly(run, now)) is not None:
        run.definition = direct_definition(run, entry, now, models)
        run.model = run.definition["model"]
        snapshot = {"definition": run.definition, "model": run.model}
        return _plan(run, run.definition, now, models, root_thread, snapshot=snapshot)
    if _is_graph(run, now):
        return graph_plans.plan_for(run, now)
    lead = lead_of(run, now)
    written = lead_definition(run, lead, now, models)
    allowed, why_nobody = permitted(run, lead, now)
    definition = cast("dict[str, Any]", clean_json({**written, "delegation_enabled": why_nobody is None}))
    noted = RunNoted(delegation_off=why_nobody.value if why_nobody else "", clamped=clamped(run, definition["limits"]))
    own = {name: value for name, value in run.metadata.items() if name not in OF_THE_SERVER}
    metadata = {**own, "allowed_subagents": list(allowed), **noted.payload()}
    run.definition, run.metadata, run.model = definition, metadata, definition["model"]
    snapshot = {"definition": definition, "metadata": metadata, "model": definition["model"]}
    return _plan(run, definition, now, models, root_thread, snapshot=snapshot, noted=noted if noted.payload() else None)


def _is_graph(run: Run, now: Registry) -> bool:
    return run.agent != DEFAULT_LEAD and lead_of(run, now).is_graph


def _plan(
    run: Run,
    definition: Mapping[str, Any],
    now: Registry,
    models: ModelRegistry,
    root_thread: UUID,
    *,
    snapshot: Mapping[str, Any],
    noted: RunNoted | None = None,
) -> Plan:
    limits = limits_from_json(definition["limits"])
    allowed = tuple(run.metadata.get("allowed_subagents", ()))
    roster = tuple(
        RosterEntry(name=name, description=now.catalogue.runnable[name].definition.description)
        for name in allowed
        if name in now.catalogue.runnable and now.catalogue.runnable[name].works_here
    )
    is_subagent = run.depth > 0 or bool(definition.get("called_directly"))
    enabled = bool(definition.get("delegation_enabled")) and not is_subagent
    today = timezone.localdate()
    if is_subagent:
        prompt = subagent_prompt(definition["system_prompt"], today=today)
    else:
        prompt = lead_prompt(
            definition["system_prompt"], roster=roster, limits=limits, today=today, delegation_enabled=enabled
        )
    workspace = Workspace(workspace_folder(root_thread))
    workspace.prepare()
    return Plan(
        agent_name=run.agent,
        is_subagent=is_subagent,
        model=_usable(models, definition["model"]),
        models=models,
        tools=_still_safe(definition["tools"], now),
        system_prompt=prompt,
        limits=limits,
        roster=roster,
        allowed=allowed,
        delegation_enabled=enabled,
        workspace=workspace,
        sandbox=registry.sandbox(now.config),
        snapshot=snapshot,
        noted=noted,
        thinking=bool(definition.get("thinking")),
        skills=definition.get("skills"),
    )


def dispatch_for(run: Run, plan: Plan, call: ChildCall, now: Registry) -> Dispatch | str:
    """The second check of a delegation, on the server, at the moment of the call. A refusal is a sentence.

    `now` is a registry that was looked up fresh for this call and those made together with it.

    Source: product.md §4: the snapshot says who may be called, the live registry what they are now.
    """
    if not plan.delegation_enabled:
        return "Delegation is switched off for this run. Do the work yourself."
    if not call.prompt.strip():
        return "The prompt is empty. Say what the subagent shall do; it sees nothing else."
    found = registry.resolve_dispatch(call.subagent_type, allowed=plan.allowed, now=now)
    if isinstance(found, Refusal):
        return found.text
    return _dispatch(plan, call, found, now)


def child_of(run: Run, tool_call_id: str) -> Run | None:
    """The child that this call has started already, whatever may be dispatched by now."""
    child: Run | None = Run.objects.filter(parent_id=run.pk, tool_call_id=tool_call_id).first()
    return child


def _dispatch(plan: Plan, call: ChildCall, entry: Entry, now: Registry) -> Dispatch | str:
    try:
        model = plan.models.resolve(entry.effective.model, plan.model)
    except EngineError as fault:
        return f"The subagent {entry.name} cannot run: {fault}"
    limits = subagent_limits(entry, now, tree_tokens=plan.limits.tree_tokens)
    if entry.source is Source.GRAPH:
        model, definition = "", graph_plans.child_definition(entry.name, limits, now)
    else:
        definition = subagent_definition(
            entry, now, limits, model=model, lead_tools=plan.tools, lead_skills=plan.skills
        )
    return Dispatch(
        agent=entry.name,
        title=_title(call),
        model=model,
        definition=cast("dict[str, Any]", clean_json(definition)),
        card={
            "display_name": entry.definition.title,
            "max_turns": limits.max_turns,
            "timeout_seconds": limits.timeout_seconds,
            "max_tokens": limits.tokens.max_tokens if limits.tokens else None,
        },
    )


def _title(call: ChildCall) -> str:
    line = " ".join(clean(call.description or call.prompt).split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1].rstrip() + "…"


def _still_safe(tools: Sequence[str], now: Registry) -> tuple[str, ...]:
    """The stored tools, without bash when its gate has closed since."""
    if BASH in tools and not registry.bash_gate(now.config).ok:
        return tuple(name for name in tools if name != BASH)
    return tuple(tools)


def _usable(models: ModelRegistry, name: str) -> str:
    return resolved(models, name, None)


def _root_thread(run: Run) -> UUID:
    if run.depth == 0:
        return run.thread_id
    return Run.objects.values_list("thread_id", flat=True).get(pk=run.root_id)


_known_models: list[tuple[Any, ModelRegistry]] = []


def model_registry(now: Registry) -> ModelRegistry:
    """The models of the accepted configuration. Kept while the models section stays the same: it caches clients."""
    if not _known_models or _known_models[0][0] != now.config.models:
        _known_models[:] = [(now.config.models, ModelRegistry(now.config.models, os.environ))]
    return _known_models[0][1]


def share_models(workers: int) -> None:
    """So many workers share what models allow at the same time; to be called on the worker's loop."""
    for _section, models in _known_models:
        models.share_among(workers)


async def close_models() -> None:
    """Close the model connections of the running event loop, before it ends."""
    for _section, models in _known_models:
        await models.aclose()


def tree_tokens(root_id: UUID) -> int:
    """Tokens of a lead and all its children as their budgets count them, estimates included."""
    return Run.objects.filter(root_id=root_id).aggregate(total=Sum("guard_tokens"))["total"] or 0


def release_lease(queue_id: int) -> None:
    """Let another worker take the run now, and tell all of them."""
    with transaction.atomic():
        queue.release([queue_id], clock.now())
        ring_at_commit(Ring(queue=True))
