"""Catalogue entries as instances of the model, which is what Django's change list can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subagents.models import ManagedSubagent

if TYPE_CHECKING:
    from subagents.catalogue import Entry


def row(entry: Entry) -> ManagedSubagent:
    """Return an instance that stands for the entry: its primary key is the entry's address. Never save it."""
    definition = entry.definition
    instance = ManagedSubagent(
        name=definition.name, display_name=definition.display_name, description=definition.description
    )
    instance.pk = entry.key
    instance.entry = entry  # type: ignore[attr-defined]
    return instance


def entry_of(instance: ManagedSubagent) -> Entry:
    entry: Entry = instance.entry  # type: ignore[attr-defined]
    return entry
