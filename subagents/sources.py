"""From a read config.yaml to definitions, unreadable entries and unreadable overrides."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from engine.config.names import normalise_name
from subagents.catalogue import Invalid
from subagents.definitions import Definition, Source
from subagents.validation import from_config_entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.config.errors import Problem
    from engine.config.schema import Config

_CUSTOM_AGENTS: Final = "subagents.custom_agents."
_OVERRIDES: Final = "subagents.agents."


def config_definitions(config: Config) -> tuple[Definition, ...]:
    """Return the subagents that config.yaml defines."""
    entries = config.subagents.custom_agents
    return tuple(from_config_entry(name, entry) for name, entry in entries.items())


def invalid_definitions(invalid_entries: Mapping[str, Sequence[Problem]]) -> tuple[Invalid, ...]:
    """Return the unreadable ones among `subagents.custom_agents`, one per name, each with all its problems."""
    problems = _by_name(invalid_entries, _CUSTOM_AGENTS)
    return tuple(Invalid(source=Source.CONFIG, name=name, problems=found) for name, found in problems.items())


def broken_overrides(invalid_entries: Mapping[str, Sequence[Problem]]) -> dict[str, tuple[str, ...]]:
    """Return, by name, what is wrong with entries of `subagents.agents`; none of them is applied."""
    return _by_name(invalid_entries, _OVERRIDES)


def _by_name(invalid_entries: Mapping[str, Sequence[Problem]], prefix: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for path, problems in invalid_entries.items():
        if path.startswith(prefix):
            name = _entry_name(path.removeprefix(prefix))
            found[name] = (*found.get(name, ()), *(problem.reason for problem in problems))
    return found


def _entry_name(written: str) -> str:
    """Return the normalised name where one can be made, else the key as the file has it."""
    key = written
    if written.startswith('"'):
        try:
            key = str(json.loads(written))
        except ValueError:
            return written
    try:
        return normalise_name(key)
    except ValueError:
        return key
