"""Custom agents as they stand now: what their scope gives, what is wrong with them, whether they can be talked to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.tools.names import DELEGATION_TOOLS
from subagents.catalogue import State
from subagents.custom_agents import CustomAgent
from subagents.definitions import INHERIT, Source
from subagents.notes import Note, note
from subagents.scope import ScopeKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from subagents.catalogue import Catalogue, Invalid, Known


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry:
    """One custom agent. Of an invalid one the agent holds only its name and version.

    `resolved` are the subagents its scope gives now, `missing` those it selects and no entry bears.
    """

    agent: CustomAgent
    state: State  # active, disabled or invalid
    reason: Note | None = None  # why it is disabled or invalid
    problems: tuple[str, ...] = ()  # of an invalid one, each with its place
    warnings: tuple[Note, ...] = ()
    resolved: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def item(self) -> CustomAgent:
        """What stands behind the entry, under the name that entries of both kinds have for it."""
        return self.agent

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def source(self) -> Source:
        return Source.MANAGED

    @property
    def shadowed_by(self) -> None:
        """No other source has custom agents."""
        return None

    @property
    def key(self) -> str:
        return self.agent.key

    @property
    def runnable(self) -> bool:
        return self.state is State.ACTIVE


def build_agents(
    agents: Iterable[CustomAgent], invalid: Iterable[Invalid], catalogue: Catalogue, known: Known
) -> tuple[AgentEntry, ...]:
    """Return one entry per custom agent, sorted by name."""
    present = frozenset(entry.name for entry in catalogue.entries)
    entries = [*(_entry(agent, catalogue, present, known) for agent in agents), *map(_unreadable, invalid)]
    return tuple(sorted(entries, key=lambda entry: entry.name))


def _unreadable(item: Invalid) -> AgentEntry:
    placeholder = CustomAgent(name=item.name, system_prompt="", version=item.version)
    return AgentEntry(agent=placeholder, state=State.INVALID, reason=note("invalid_agent"), problems=item.problems)


def _entry(agent: CustomAgent, catalogue: Catalogue, present: frozenset[str], known: Known) -> AgentEntry:
    resolved = agent.scope.resolve(catalogue)
    missing = tuple(name for name in agent.scope.names if name not in present)
    return AgentEntry(
        agent=agent,
        state=State.ACTIVE if agent.enabled else State.DISABLED,
        reason=None if agent.enabled else note("disabled_agent"),
        warnings=(*_unknown(agent, known), *_scope_warnings(agent, resolved, missing)),
        resolved=resolved,
        missing=missing,
    )


def _unknown(agent: CustomAgent, known: Known) -> list[Note]:
    found: list[Note] = []
    if known.tools is not None:
        tools = frozenset((*DELEGATION_TOOLS, *known.tools))
        found += [note("unknown_tool", name=name) for name in dict.fromkeys(agent.tools or ()) if name not in tools]
    if known.skills is not None:
        skills = frozenset(known.skills)
        found += [note("unknown_skill", name=name) for name in dict.fromkeys(agent.skills or ()) if name not in skills]
    if known.models is not None and agent.model not in (INHERIT, *known.models):
        found.append(note("unknown_model", name=agent.model))
    return found


def _scope_warnings(agent: CustomAgent, resolved: tuple[str, ...], missing: tuple[str, ...]) -> list[Note]:
    if agent.scope.kind is not ScopeKind.ONLY:
        return []
    idle = [name for name in agent.scope.names if name not in resolved and name not in missing]
    found = [note("missing_subagent", name=name) for name in missing]
    found += [note("idle_subagent", name=name) for name in idle]
    if not resolved and agent.subagent_enabled:
        found.append(note("empty_scope"))
    return found
