"""Custom agents as instances of the model, which is what Django's change list can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subagents.models import CustomAgent

if TYPE_CHECKING:
    from subagents.agent_entries import AgentEntry


def row(entry: AgentEntry) -> CustomAgent:
    """Return an instance that stands for the entry: its primary key is the entry's address. Never save it."""
    agent = entry.agent
    instance = CustomAgent(name=agent.name, display_name=agent.display_name, description=agent.description)
    instance.pk = entry.key
    instance.entry = entry  # type: ignore[attr-defined]
    return instance


def entry_of(instance: CustomAgent) -> AgentEntry:
    entry: AgentEntry = instance.entry  # type: ignore[attr-defined]
    return entry
