"""Remote agents as they stand now: which one holds a name, and what each adds to the catalogue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.graphs.file import spoken
from engine.outbound.policy import Policy, refusal_of_text
from subagents.catalogue import Invalid, State
from subagents.definitions import Definition, Source, row_key
from subagents.notes import Note, note
from subagents.remote_agents import RemoteAgent, from_config, missing_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.config.errors import Problem
    from engine.config.schema import Config
    from subagents.catalogue import Catalogue

_SECTION = "async_subagents["


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEntry:
    """One remote agent. Of an invalid one the agent holds only its name and version."""

    agent: RemoteAgent
    source: Source  # config or managed
    state: State
    reason: Note | None = None
    shadowed_by: Source | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[Note, ...] = ()

    @property
    def item(self) -> RemoteAgent:
        return self.agent

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def key(self) -> str:
        return row_key(self.source, self.name)

    @property
    def runnable(self) -> bool:
        return self.state is State.ACTIVE


def remote_entries(
    config: Config,
    invalid_entries: Mapping[str, Sequence[Problem]],
    managed: Iterable[RemoteAgent],
    unreadable: Iterable[Invalid],
    environ: Mapping[str, str],
) -> tuple[RemoteEntry, ...]:
    """Every remote agent, by name, those of config.yaml before managed ones, which they shadow."""
    policy = Policy.of(config.outbound.allow_private)
    entries = [
        *(_entry(from_config(entry), Source.CONFIG, policy, environ) for entry in config.async_subagents),
        *_unreadable_in_file(invalid_entries),
        *(_entry(agent, Source.MANAGED, policy, environ) for agent in managed),
        *(_unreadable(item.name, Source.MANAGED, item.problems, item.version) for item in unreadable),
    ]
    in_file = {spoken(entry.name) for entry in entries if entry.source is Source.CONFIG}
    found = [
        _shadowed(entry, Source.CONFIG)
        if entry.source is Source.MANAGED and spoken(entry.name) in in_file and not entry.problems
        else entry
        for entry in entries
    ]
    return tuple(sorted(found, key=lambda entry: (spoken(entry.name), entry.source is Source.MANAGED)))


def holders(entries: Iterable[RemoteEntry]) -> tuple[RemoteEntry, ...]:
    """The one entry of each name that stands for it among all callables."""
    found: dict[str, RemoteEntry] = {}
    for entry in entries:
        found.setdefault(spoken(entry.name), entry)
    return tuple(found.values())


def definitions(entries: Iterable[RemoteEntry]) -> tuple[Definition, ...]:
    """The readable ones as the catalogue lists them."""
    return tuple(
        Definition(
            name=entry.name,
            source=Source.REMOTE,
            display_name=entry.agent.display_name,
            description=entry.agent.description,
            system_prompt="",
            enabled=entry.agent.enabled,
        )
        for entry in holders(entries)
        if not entry.problems
    )


def invalid(entries: Iterable[RemoteEntry]) -> tuple[Invalid, ...]:
    return tuple(
        Invalid(source=Source.REMOTE, name=entry.name, problems=entry.problems)
        for entry in holders(entries)
        if entry.problems
    )


def unavailable(entries: Iterable[RemoteEntry]) -> dict[tuple[Source, str], Note]:
    """Why those that cannot be called now cannot."""
    return {
        (Source.REMOTE, entry.name): entry.reason
        for entry in holders(entries)
        if entry.state is State.UNAVAILABLE and entry.reason is not None
    }


def in_catalogue(entries: Iterable[RemoteEntry], catalogue: Catalogue) -> tuple[RemoteEntry, ...]:
    """The entries with who else holds their name: built-in, config, managed, and graphs come first."""
    return tuple(_in_catalogue(entry, catalogue) for entry in entries)


def _in_catalogue(entry: RemoteEntry, catalogue: Catalogue) -> RemoteEntry:
    holder = catalogue.holder(entry.name)
    if entry.problems or entry.shadowed_by or holder is None or holder.source is Source.REMOTE:
        return entry
    return _shadowed(entry, holder.source)


def _shadowed(entry: RemoteEntry, source: Source) -> RemoteEntry:
    why = note("shadowed", source=source.value)
    return replace(entry, state=State.SHADOWED, shadowed_by=source, reason=why)


def _entry(agent: RemoteAgent, source: Source, policy: Policy, environ: Mapping[str, str]) -> RemoteEntry:
    state, reason = State.ACTIVE, None
    missing = missing_variables(agent, environ)
    if not agent.enabled:
        state, reason = State.DISABLED, note("disabled")
    elif missing:
        state, reason = State.UNAVAILABLE, note("unset_variable", names=", ".join(missing))
    return RemoteEntry(agent=agent, source=source, state=state, reason=reason, warnings=_warnings(agent, policy))


def _warnings(agent: RemoteAgent, policy: Policy) -> tuple[Note, ...]:
    found = []
    refusal = refusal_of_text(agent.url, policy) if agent.url else ""
    if refusal:
        found.append(note("address_refused", reason=refusal))
    if agent.headers and agent.url and agent.url.startswith("http://"):
        found.append(note("headers_unencrypted"))
    if agent.mode == "fork":
        found.append(note("fork_is_isolated"))
    return tuple(found)


def _unreadable_in_file(invalid_entries: Mapping[str, Sequence[Problem]]) -> list[RemoteEntry]:
    """One per entry of `async_subagents` that cannot be used, under its place: its name may be what is wrong."""
    found = {
        path: tuple(problem.reason for problem in problems)
        for path, problems in invalid_entries.items()
        if path.startswith(_SECTION)
    }
    return [_unreadable(path, Source.CONFIG, problems) for path, problems in found.items()]


def _unreadable(name: str, source: Source, problems: tuple[str, ...], version: str | None = None) -> RemoteEntry:
    placeholder = RemoteAgent(name=name, description="", graph_id="", version=version)
    return RemoteEntry(
        agent=placeholder, source=source, state=State.INVALID, reason=note("invalid_remote"), problems=problems
    )
