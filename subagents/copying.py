"""From an entry of any source to the document of a new definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.names import NAME_MAX_LENGTH, normalise_name
from subagents.agent_entries import AgentEntry
from subagents.builtins import DEFAULT_MAX_TURNS
from subagents.layers import BUDGET_FIELDS, DEFAULT
from subagents.remote_agents import to_plain as remote_to_plain
from subagents.remote_entries import RemoteEntry
from subagents.validation import agent_to_plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Collection

    from subagents.catalogue import Entry
    from subagents.layers import Layer
    from subagents.registry import Registry

_GLOBAL = ("subagents.timeout_seconds", "subagents.max_turns", "subagents.token_budget")


def copied(entry: Entry | AgentEntry | RemoteEntry, now: Registry) -> dict[str, object]:
    """Return the entry's effective values as a document under a free name.

    A value that a managed definition would get from the same global setting or default anyway is left unsaid.
    """
    if isinstance(entry, AgentEntry):
        return {**agent_to_plain(entry.agent), "name": _free_name(entry.name, {each.name for each in now.agents})}
    if isinstance(entry, RemoteEntry):
        # Without its headers: a secret goes where somebody who knows it puts it.
        taken = {each.name for each in now.catalogue.entries}
        return {**remote_to_plain(entry.agent), "headers": {}, "name": _free_name(entry.name, taken)}
    effective = entry.effective
    said_turns = not _is_shared(entry.layers["max_turns"][0]) or effective.max_turns != _shared_turns(entry)
    budget = {
        field: entry.layers[f"token_budget.{field}"][0].value
        for field in BUDGET_FIELDS
        if not _is_shared(entry.layers[f"token_budget.{field}"][0])
    }
    return {
        **to_plain(entry.definition),
        "name": _free_name(entry.name, {each.name for each in now.catalogue.entries}),
        "model": effective.model,
        "tools": _listed(effective.tools),
        "skills": _listed(effective.skills),
        "max_turns": effective.max_turns if said_turns else None,
        "timeout_seconds": (None if _is_shared(entry.layers["timeout_seconds"][0]) else effective.timeout_seconds),
        "token_budget": budget or None,
    }


def _is_shared(winner: Layer) -> bool:
    return winner.name == DEFAULT or winner.name.startswith(_GLOBAL)


def _shared_turns(entry: Entry) -> int:
    """Built-ins have defaults of their own for turns, which a copy must say."""
    winner = entry.layers["max_turns"][0]
    return entry.effective.max_turns if winner.name != DEFAULT else DEFAULT_MAX_TURNS


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return `<name>-copy`, or with a number, such that nobody bears it."""
    try:
        stem = normalise_name(name)
    except ValueError:
        stem = "definition"
    number = 1
    while True:
        ending = "-copy" if number == 1 else f"-copy-{number}"
        free = stem[: NAME_MAX_LENGTH - len(ending)].rstrip("-") + ending
        if free not in taken:
            return free
        number += 1
