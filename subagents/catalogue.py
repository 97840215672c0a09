"""The catalogue: every definition of every source, merged, with what each runs with and why it does or does not run.

Decisions: an entry that is switched off, unavailable or cannot be read still holds its name. Otherwise one mistyped
line in config.yaml would silently hand the name, and every scope list that mentions it, to a weaker prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from engine.graphs.file import spoken
from engine.reasons import joined
from engine.tools.names import DELEGATION_TOOLS
from subagents.builtins import BASH
from subagents.definitions import INHERIT, PRECEDENCE, Definition, Source, row_key
from subagents.layers import Effective, Layers, overridden_fields, resolve
from subagents.notes import Note, note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from engine.config.schema import Config


class State(StrEnum):
    """What an entry is right now. The first one that applies, in this order, is shown."""

    INVALID = "invalid"
    SHADOWED = "shadowed"
    DISABLED = "disabled"
    UNAVAILABLE = "unavailable"
    OVERRIDDEN = "overridden"
    ACTIVE = "active"


RUNNABLE: Final = frozenset({State.ACTIVE, State.OVERRIDDEN})


class Gate(Protocol):
    """Whether commands can run safely, and the plain sentence why not (`engine.sandbox.base.Availability`)."""

    @property
    def ok(self) -> bool: ...

    @property
    def reason(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """An entry that was found but cannot be read. `name` is as found when no valid name could be made of it.

    `version` is that of a managed one which may be replaced or deleted; None: it is in nobody's power here.
    """

    source: Source
    name: str
    problems: tuple[str, ...]
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Names that exist. None: not known here, so nothing of that kind is called unknown."""

    tools: Collection[str] | None = None
    models: Collection[str] | None = None
    skills: Collection[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the catalogue. For an invalid entry the definition holds only its source, name and version."""

    definition: Definition
    state: State
    effective: Effective
    layers: Layers
    reason: Note | None = None  # why it is shadowed, disabled, unavailable or invalid
    shadowed_by: Source | None = None
    overridden: tuple[str, ...] = ()  # fields that subagents.agents.<name> sets
    warnings: tuple[Note, ...] = ()
    problems: tuple[str, ...] = ()  # of an invalid entry, each with its place

    @property
    def item(self) -> Definition:
        """What stands behind the entry, under the name that entries of both kinds have for it."""
        return self.definition

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def source(self) -> Source:
        return self.definition.source

    @property
    def runnable(self) -> bool:
        return self.state in RUNNABLE

    @property
    def works_here(self) -> bool:
        """Whether our own workers run it, so that `task` can call it; remote agents do not."""
        return self.source is not Source.REMOTE

    @property
    def key(self) -> str:
        return row_key(self.source, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All entries, by name and then precedence; `runnable` maps each callable name to its one entry."""

    entries: tuple[Entry, ...] = ()
    runnable: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def conflicts(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.shadowed_by is not None)

    def holder(self, name: str) -> Entry | None:
        """Return the entry that holds `name`, whether it runs or not."""
        found = (entry for entry in self.entries if entry.shadowed_by is None)
        return next((entry for entry in found if spoken(entry.name) == spoken(name)), None)

    def by_key(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key == key), None)


def build_catalogue(
    definitions: Iterable[Definition],
    config: Config,
    *,
    invalid: Iterable[Invalid] = (),
    broken_overrides: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    bash: Gate,
    known: Known,
    remarks: Mapping[tuple[Source, str], tuple[Note, ...]] = MappingProxyType({}),
    unavailable: Mapping[tuple[Source, str], Note] = MappingProxyType({}),
) -> Catalogue:
    """Merge the definitions of all sources into one catalogue, sorted by name, then precedence.

    Takes at most one definition or invalid entry per (source, name); an invalid entry beats a definition of
    the same source and name. Each comes back exactly once: of those sharing a name the strongest source holds
    it, the others say who shadows them. `subagents.agents.<name>` of `config` changes whichever entry it names;
    `broken_overrides` maps a name to the problems of an override that could not be read; `remarks` are further
    warnings by (source, name), `unavailable` says which cannot run now, and why.
    Source: product.md §2.2, §2.4.
    """
    unreadable = {(item.source, item.name): item for item in invalid}
    readable = {(definition.source, definition.name): definition for definition in definitions}
    rows = {**readable, **{place: _placeholder(item) for place, item in unreadable.items()}}
    holders: dict[str, Source] = {}
    entries = []
    for place, definition in sorted(rows.items(), key=lambda row: (spoken(row[0][1]), PRECEDENCE[row[0][0]])):
        holder = holders.setdefault(spoken(definition.name), definition.source)
        shadowed_by = None if holder is definition.source else holder
        problems = unreadable[place].problems if place in unreadable else None
        effective, layers = resolve(definition, config)
        why_not = unavailable.get(place) or _why_no_bash(definition, bash)
        state, reason = _state(definition, shadowed_by, problems, why_not, overridden_fields(layers))
        entries.append(
            Entry(
                definition=definition,
                state=state,
                reason=reason,
                shadowed_by=shadowed_by,
                effective=effective,
                layers=layers,
                overridden=overridden_fields(layers),
                warnings=(
                    *_warnings(definition, effective, known, broken_overrides.get(definition.name)),
                    *remarks.get(place, ()),
                ),
                problems=problems or (),
            )
        )
    runnable = {entry.name: entry for entry in entries if entry.runnable}
    return Catalogue(entries=tuple(entries), runnable=MappingProxyType(runnable))


def _placeholder(item: Invalid) -> Definition:
    return Definition(name=item.name, source=item.source, description="", system_prompt="", version=item.version)


def _state(
    definition: Definition,
    shadowed_by: Source | None,
    problems: tuple[str, ...] | None,
    why_not: Note | None,
    overridden: Collection[str],
) -> tuple[State, Note | None]:
    if problems is not None:
        return State.INVALID, note("invalid")
    if shadowed_by is not None:
        return State.SHADOWED, note("shadowed", source=shadowed_by.value)
    if not definition.enabled:
        return State.DISABLED, note("disabled")
    if why_not is not None:
        return State.UNAVAILABLE, why_not
    return (State.OVERRIDDEN if overridden else State.ACTIVE), None


def _why_no_bash(definition: Definition, bash: Gate) -> Note | None:
    is_bash = definition.source is Source.BUILTIN and definition.name == BASH
    return note("no_bash", reason=bash.reason) if is_bash and not bash.ok else None


def _warnings(
    definition: Definition, effective: Effective, known: Known, broken_override: tuple[str, ...] | None
) -> tuple[Note, ...]:
    found: list[Note] = []
    if broken_override is not None:
        path = f"subagents.agents.{definition.name}"
        found.append(note("broken_override", path=path, problems=joined(broken_override)))
    found += [note("denied_tool", name=name) for name in effective.tools or () if name in DELEGATION_TOOLS]
    listed = (*(effective.tools or ()), *definition.disallowed_tools)
    always_known = (*DELEGATION_TOOLS, *(known.tools or ()))
    if known.tools is not None:
        found += [note("unknown_tool", name=name) for name in dict.fromkeys(listed) if name not in always_known]
    if known.skills is not None:
        found += [note("unknown_skill", name=name) for name in effective.skills or () if name not in known.skills]
    if known.models is not None and effective.model not in (INHERIT, *known.models):
        found.append(note("unknown_model", name=effective.model))
    return tuple(found)
