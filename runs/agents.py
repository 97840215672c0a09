"""The agents that a message can be sent to now: the default lead and every enabled custom agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from engine.text import shorten
from runs.errors import BadInput
from runs.explain import why_no_delegation
from runs.options import agent_name
from runs.statuses import DelegationOff
from subagents import registry
from subagents.errors import ConfigRefused, UnknownAgent
from subagents.leads import DEFAULT_LEAD, lead_of, lead_of_graph
from subagents.scope import ScopeKind

if TYPE_CHECKING:
    from subagents.leads import LeadDefinition
    from subagents.registry import Registry

_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One agent as a person chooses it. `callables` are the names of the subagents it may call now."""

    name: str
    label: str
    description: str
    callables: tuple[str, ...]
    delegation_off: DelegationOff | None

    @property
    def about(self) -> str:
        """What it is for and whom it may call, in the active language."""
        if self.delegation_off is not None:
            reach = why_no_delegation(self.delegation_off.value)
        else:
            shown = ", ".join(self.callables[:_NAMES_SHOWN])
            more = len(self.callables) - _NAMES_SHOWN
            names = (
                shown
                if more <= 0
                else pgettext("a list of names, cut", "%(names)s and %(more)s more")
                % {
                    "names": shown,
                    "more": more,
                }
            )
            reach = _("Can delegate to: %(names)s") % {"names": names}
        return " · ".join(part for part in (" ".join(self.description.split()), reach) if part)


def reach(lead: LeadDefinition, now: Registry, *, asked: bool = True) -> tuple[tuple[str, ...], DelegationOff | None]:
    """Whom a run of this agent may call, and why nobody when that is so. `asked`: what the request says.

    The agent's own settings are bounds: no request opens them again.
    Source: product.md §4.
    """
    if lead.scope.kind is ScopeKind.NONE:
        return (), DelegationOff.SCOPE_NONE
    if not lead.subagent_enabled:
        return (), DelegationOff.AGENT
    if not asked:
        return (), DelegationOff.REQUEST
    runnable = now.catalogue.runnable
    names = tuple(name for name in lead.scope.resolve(now.catalogue) if runnable[name].works_here)
    if not names:
        return (), DelegationOff.SCOPE_EMPTY if lead.scope.kind is ScopeKind.ONLY else DelegationOff.NOBODY
    return names, None


def choices(now: Registry) -> tuple[Choice, ...]:
    """All that can be chosen, the default lead first, then by name."""
    lead = now.lead(DEFAULT_LEAD)
    about = _("Answers itself or splits the work between subagents.")
    first = _choice(lead, _(lead.display_name), about, now)
    custom = (entry.agent for entry in now.agents if entry.runnable)
    graphs = (entry.definition for entry in now.graph_leads)
    return (
        first,
        *(_choice(lead_of(agent), agent.title, agent.description, now) for agent in custom),
        *(_choice(lead_of_graph(graph), graph.title, graph.description, now) for graph in graphs),
    )


def find(written: Any, *, field: str) -> str:
    """The name of the agent that is meant and can be used now. Raises BadInput for one that cannot.

    Touches the database: call it from a thread.
    """
    name = agent_name(written, field)
    if name == DEFAULT_LEAD:
        return name
    try:
        now = registry.current()
        return now.lead(name).name
    except ConfigRefused:
        raise BadInput(field, _("no custom agent can be used while config.yaml is refused")) from None
    except UnknownAgent:
        graphs = (entry.name for entry in now.graph_leads)
        known = ", ".join((DEFAULT_LEAD, *(entry.name for entry in now.agents if entry.runnable), *graphs))
        said = _("there is no agent of this name; agents are: %(names)s")
        raise BadInput(field, said % {"names": shorten(known, 1_000)}) from None


def _choice(lead: LeadDefinition, label: str, description: str, now: Registry) -> Choice:
    callables, off = reach(lead, now)
    return Choice(name=lead.name, label=label, description=description, callables=callables, delegation_off=off)
