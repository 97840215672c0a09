"""Searching and ordering entries, of either kind. They are in no table, so the database cannot do this."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from subagents.definitions import PRECEDENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from subagents.agent_entries import AgentEntry
    from subagents.catalogue import Entry
    from subagents.remote_entries import RemoteEntry
    from subagents.usage import Use

_Entry = TypeVar("_Entry", "Entry", "AgentEntry", "RemoteEntry")

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)

# By what a list of entries can be sorted.
COMMON_ORDERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": lambda entry: (entry.item.title.casefold(), entry.name),
    "state": lambda entry: entry.state.value,
    "updated": lambda entry: entry.item.updated_at or _LONG_AGO,
}
ORDERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **COMMON_ORDERS,
    "source": lambda entry: PRECEDENCE[entry.source],
    "limits": lambda entry: (entry.effective.max_turns, entry.effective.timeout_seconds),
    "model": lambda entry: entry.effective.model,
}
AGENT_ORDERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **COMMON_ORDERS,
    "model": lambda entry: entry.agent.model,
    "scope": lambda entry: len(entry.resolved),
}


def by_use(uses: Mapping[str, Use]) -> Callable[[Any], Any]:
    """Order by the newest run; what never ran comes first."""
    return lambda entry: uses[entry.name].at if entry.name in uses else _LONG_AGO


def search(entries: Iterable[_Entry], query: str) -> list[_Entry]:
    """Keep the entries in whose name, display name or description every word of `query` occurs."""
    words = query.casefold().split()
    return [entry for entry in entries if all(word in _searched(entry) for word in words)]


def _searched(entry: Entry | AgentEntry | RemoteEntry) -> str:
    item = entry.item
    return f"{item.name}\n{item.display_name}\n{item.description}".casefold()
