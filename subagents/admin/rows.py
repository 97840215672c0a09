"""Catalogue entries as instances of the model, which is what Django's change list can show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from subagents.definitions import PRECEDENCE
from subagents.models import ManagedSubagent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from subagents.catalogue import Entry
    from subagents.usage import Use

LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)

# Columns by which the list can be sorted; the keys are what the page's columns name as their order.
ORDERS: Final[dict[str, Callable[[Entry], object]]] = {
    "name": lambda entry: (entry.definition.title.casefold(), entry.name),
    "source": lambda entry: PRECEDENCE[entry.source],
    "state": lambda entry: entry.state.value,
    "limits": lambda entry: (entry.effective.max_turns, entry.effective.timeout_seconds),
    "model": lambda entry: entry.effective.model,
    "updated": lambda entry: entry.definition.updated_at or LONG_AGO,
}


def by_use(uses: Mapping[str, Use]) -> Callable[[Entry], object]:
    """Order by the newest run; what never ran comes first."""
    return lambda entry: uses[entry.name].at if entry.name in uses else LONG_AGO


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


def search(entries: Iterable[Entry], query: str) -> list[Entry]:
    """Keep the entries in whose name, display name or description every word of `query` occurs."""
    words = query.casefold().split()
    return [entry for entry in entries if all(word in _searched(entry) for word in words)]


def _searched(entry: Entry) -> str:
    definition = entry.definition
    return f"{definition.name}\n{definition.display_name}\n{definition.description}".casefold()
