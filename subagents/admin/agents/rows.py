"""Custom agents as instances of the model, which is what Django's change list can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from subagents.admin.rows import LONG_AGO
from subagents.models import CustomAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from subagents.agent_entries import AgentEntry

# Columns by which the list can be sorted; the keys are what the page's columns name as their order.
ORDERS: Final[dict[str, Callable[[AgentEntry], object]]] = {
    "name": lambda entry: (entry.agent.title.casefold(), entry.name),
    "state": lambda entry: entry.state.value,
    "model": lambda entry: entry.agent.model,
    "allowed_subagents": lambda entry: len(entry.resolved),
    "updated_at": lambda entry: entry.agent.updated_at or LONG_AGO,
}


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


def search(entries: Iterable[AgentEntry], query: str) -> list[AgentEntry]:
    """Keep the agents in whose name, display name or description every word of `query` occurs."""
    words = query.casefold().split()
    return [entry for entry in entries if all(word in _searched(entry) for word in words)]


def _searched(entry: AgentEntry) -> str:
    return f"{entry.name}\n{entry.agent.display_name}\n{entry.agent.description}".casefold()
