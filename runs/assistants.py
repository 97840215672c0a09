"""Assistants: what programs may name when they start a run. Those of the system follow from what exists here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from runs import agents
from runs.assistant_ids import assistant_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from subagents.registry import Registry


class AssistantKind(StrEnum):
    LEAD = "lead"  # the default lead
    CUSTOM_AGENT = "custom_agent"
    GRAPH = "graph"
    SUBAGENT = "subagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAssistant:
    """An agent that exists here: it cannot be changed over the wire. `name` is its graph's id too."""

    name: str
    kind: AssistantKind
    label: str
    description: str

    @property
    def id(self) -> str:
        return assistant_id(self.name)


def system_assistants(now: Registry) -> tuple[SystemAssistant, ...]:
    """Every agent that a program can start now, the default lead first. Of those that share a name the first runs."""
    found: dict[str, SystemAssistant] = {}
    for one in (*_leads(now), *_subagents(now)):
        found.setdefault(one.name, one)
    return tuple(found.values())


def _leads(now: Registry) -> Iterable[SystemAssistant]:
    graphs = {entry.name for entry in now.graph_leads}
    for place, choice in enumerate(agents.choices(now)):
        kind = AssistantKind.CUSTOM_AGENT if place else AssistantKind.LEAD
        if choice.name in graphs:
            kind = AssistantKind.GRAPH
        yield SystemAssistant(name=choice.name, kind=kind, label=choice.label, description=choice.description)


def _subagents(now: Registry) -> Iterable[SystemAssistant]:
    for name, entry in sorted(now.catalogue.runnable.items()):
        if not entry.works_here:
            continue  # whoever wants it asks the server it is on
        definition = entry.definition
        yield SystemAssistant(
            name=name, kind=AssistantKind.SUBAGENT, label=definition.title, description=definition.description
        )
