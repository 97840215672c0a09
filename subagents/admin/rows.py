"""Entries as instances of a model, which is what Django's change list can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from subagents.agent_entries import AgentEntry
    from subagents.catalogue import Entry
    from subagents.models import CustomAgent, ManagedSubagent, Stored
    from subagents.remote_entries import RemoteEntry

_Model = TypeVar("_Model", bound="Stored")


def row(model: type[_Model], entry: Entry | AgentEntry | RemoteEntry) -> _Model:
    """Return an instance that stands for the entry: its primary key is the entry's address. Never save it."""
    item = entry.item
    instance = model(name=item.name, display_name=item.display_name)
    instance.pk = entry.key
    instance.entry = entry  # type: ignore[attr-defined]
    return instance


def entry_of(instance: ManagedSubagent) -> Entry:
    entry: Entry = instance.entry  # type: ignore[attr-defined]
    return entry


def agent_entry_of(instance: CustomAgent) -> AgentEntry:
    entry: AgentEntry = instance.entry  # type: ignore[attr-defined]
    return entry


def any_entry_of(instance: Any) -> Entry | AgentEntry | RemoteEntry:
    entry: Entry | AgentEntry | RemoteEntry = instance.entry
    return entry
