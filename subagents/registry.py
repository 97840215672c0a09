"""Who exists and who may run, now: the one place that gathers the facts of file, store and sandbox."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError

from engine.config.errors import Problem, Severity
from engine.sandbox.base import Availability
from engine.tools.names import KNOWN_TOOLS
from subagents import configuration, sources
from subagents.agent_entries import AgentEntry, build_agents
from subagents.builtins import BUILTINS
from subagents.catalogue import Catalogue, Entry, Gate, Known, State, build_catalogue
from subagents.errors import UnknownAgent
from subagents.kinds import KINDS, Item, Kind
from subagents.leads import DEFAULT, DEFAULT_LEAD, LeadDefinition, lead_of
from subagents.matching import Refusal, match, refuse
from subagents.stores.base import Contents, Store
from subagents.stores.database import MODELS, DatabaseStore, signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.config.schema import Config
    from engine.sandbox.base import Sandbox
    from engine.sandbox.factory import Provider
    from subagents.custom_agents import CustomAgent
    from subagents.definitions import Definition

logger = logging.getLogger(__name__)

# Half of the two seconds in which every process shall see a change.
RECHECK_SECONDS: Final = 1.0

_UNAVAILABLE: Final = {
    State.DISABLED: "it has been switched off.",
    State.UNAVAILABLE: "bash cannot run safely here at the moment.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """One consistent view. `signature` changes whenever anything in it may have changed.

    `problems` are those of the file as it stands now; `config_refused` says that it is broken and that
    `config` is the last good one.
    """

    config: Config
    catalogue: Catalogue
    problems: tuple[Problem, ...]
    config_refused: bool
    signature: str
    skills: tuple[str, ...] = ()  # names of those that exist
    agents: tuple[AgentEntry, ...] = ()  # custom agents, by name

    def lead(self, agent: str) -> LeadDefinition:
        """Return the default lead or an enabled custom agent. Raises UnknownAgent, also for one that is broken."""
        if agent == DEFAULT_LEAD:
            return DEFAULT
        entry = next((entry for entry in self.agents if entry.name == agent and entry.runnable), None)
        if entry is None:
            raise UnknownAgent(agent)
        return lead_of(entry.agent)


class Observer:
    """What one process knows, looked up again when it is older than RECHECK_SECONDS.

    A `read_only` one logs nothing, keeps nothing in the database and takes it that bash can run.
    """

    def __init__(self, *, read_only: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._read_only = read_only
        self._clock = clock  # seconds
        self._lock = threading.Lock()
        self._registry: Registry | None = None
        self._reading: configuration.Reading | None = None
        self._accepted: configuration.Accepted | None = None
        self._path: Path | None = None  # None: look again
        self._looked_at = 0.0

    def current(self, *, fresh: bool = False) -> Registry:
        """See the module's `current`."""
        path = Path(settings.CONFIG_FILE)
        known, age = self._registry, self._clock() - self._looked_at
        if known is not None and not fresh and self._path == path and age < RECHECK_SECONDS:
            return known
        with self._lock:
            registry, new_good_file = self._look(path, fresh=fresh)
        # Outside the lock: writing may wait for the transaction of a thread that waits for the lock.
        if new_good_file is not None and not self._read_only:
            configuration.remember(new_good_file)
        return registry

    def forget(self) -> None:
        """See the module's `forget`."""
        with self._lock:
            self._path = None

    def _look(self, path: Path, *, fresh: bool) -> tuple[Registry, configuration.Reading | None]:
        """Refresh what is known. Also returns the reading of a good file that was not in force before."""
        reading = configuration.look(path, self._reading, fresh=fresh, log=not self._read_only)
        self._reading = reading  # also of a file that leaves nothing to run with: it is reported only once
        accepted = configuration.accept(reading, self._accepted)
        is_new = self._accepted is None or accepted.sha256 != self._accepted.sha256
        managed = _managed_signature()
        gate = Availability(ok=True) if self._read_only else bash_gate(accepted.config)
        skills = _skill_names(accepted.config, path)
        facts = (str(path), reading.sha256, accepted.sha256, managed, gate.ok, gate.reason, *skills)
        signature = sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()
        registry = self._registry
        if registry is None or registry.signature != signature:
            contents = [_open(kind).all() if managed else Contents() for kind in KINDS]
            registry = _build(accepted, contents[0], contents[1], gate, skills, signature)
        self._registry, self._accepted, self._path = registry, accepted, path
        self._looked_at = self._clock()
        return registry, reading if is_new and not accepted.refused else None


_observer = Observer()


def current(*, fresh: bool = False) -> Registry:
    """Return the registry as of now, or as of at most RECHECK_SECONDS ago.

    `fresh` looks at file and store at once. A look costs one stat and one small query; nothing is rebuilt
    unless something changed. Touches the database: call it from a thread. Raises ConfigRefused when the file
    is refused and no good one was ever accepted.
    """
    return _observer.current(fresh=fresh)


def forget() -> None:
    """Make the next `current()` look again. For whoever has just changed something, and for tests."""
    _observer.forget()


def lead(agent: str, *, now: Registry | None = None) -> LeadDefinition:
    """Return the lead that runs under this assistant id: the default one or an enabled custom agent.

    Looks at once, or at `now`. Raises UnknownAgent for one that is missing, switched off or broken.
    """
    if agent == DEFAULT_LEAD:
        return DEFAULT
    return (now or current(fresh=True)).lead(agent)


def resolve_dispatch(
    name_from_model: object, *, allowed: Sequence[str], now: Registry | None = None
) -> Entry | Refusal:
    """Return the entry that a delegation shall run, or the refusal that the model is told.

    `allowed` is the run's snapshot; `now` a registry that was looked up fresh for several calls of one moment.
    State is looked up at this moment: what has been disabled, shadowed, removed or has lost its sandbox since
    is refused. A refusal names permitted subagents only.
    Source: product.md §4.
    """
    catalogue = (now or current(fresh=True)).catalogue
    permitted = [name for name in dict.fromkeys(allowed) if name in catalogue.runnable]
    meant = match(name_from_model, permitted)
    if isinstance(meant, str):
        return catalogue.runnable[meant]
    once_allowed = match(name_from_model, allowed)
    if isinstance(once_allowed, Refusal):
        return meant
    holder = catalogue.holder(once_allowed)
    why = _UNAVAILABLE.get(holder.state, "") if holder else ""
    return refuse(name_from_model, permitted, because=f"{once_allowed} is not available: {why or 'it is gone.'}")


def store(kind: Kind[Item]) -> Store[Item]:
    """Return the store of a kind, of the backend that the configuration in force names."""
    return _open(kind)


def _open(kind: Kind[Item]) -> Store[Item]:
    return DatabaseStore(kind)


def bash_gate(config: Config) -> Gate:
    """Say whether bash can run safely under this configuration. Fails closed: not knowing is no."""
    try:
        return sandbox(config).available()
    except Exception:
        logger.exception("the sandbox could not be probed; bash stays hidden")
        return Availability(ok=False, reason="It could not be found out whether commands can run safely.")


def sandbox(config: Config) -> Sandbox:
    """Return the sandbox that this configuration asks for; one object per process and choice."""
    options = config.sandbox
    return _sandbox(options.provider, options.allow_host_bash, options.network)


@lru_cache(maxsize=8)
def _sandbox(provider: Provider, allow_host_bash: bool, network: bool) -> Sandbox:
    from engine.sandbox.factory import choose_sandbox

    return choose_sandbox(provider, allow_host_bash=allow_host_bash, network=network)


def _build(
    accepted: configuration.Accepted,
    subagents: Contents[Definition],
    agents: Contents[CustomAgent],
    gate: Gate,
    skills: tuple[str, ...],
    signature: str,
) -> Registry:
    config, invalid = accepted.config, accepted.source.invalid_entries
    known = Known(
        # What MCP servers offer is known only to whoever has connected to them.
        tools=None if config.mcp_servers else (*KNOWN_TOOLS, *(tool.name for tool in config.tools)),
        models=tuple(model.name for model in config.models),
        skills=skills,
    )
    catalogue = build_catalogue(
        (*BUILTINS, *sources.config_definitions(config), *subagents.items),
        config,
        invalid=(*sources.invalid_definitions(invalid), *subagents.invalid),
        broken_overrides=sources.broken_overrides(invalid),
        bash=gate,
        known=known,
    )
    return Registry(
        config=config,
        catalogue=catalogue,
        problems=(*accepted.reading.result.problems, *_unsupported(config, accepted.reading.path)),
        config_refused=accepted.refused,
        signature=signature,
        skills=skills,
        agents=build_agents(agents.items, agents.invalid, catalogue, known),
    )


def _unsupported(config: Config, path: Path) -> tuple[Problem, ...]:
    """What the file asks for and this version does not do yet: said, never passed over in silence."""
    asked: dict[str, bool] = {
        "tools": bool(config.tools),
        "mcp_servers": bool(config.mcp_servers),
        "async_subagents": bool(config.async_subagents),
        "acp_agents": bool(config.acp_agents),
        "outbound.allow_private": bool(config.outbound.allow_private),
    }
    messages = {name: "this has no effect in this version yet" for name, is_asked in asked.items() if is_asked}
    if config.agent_storage.backend != "db":
        messages["agent_storage.backend"] = (
            f"the backend {config.agent_storage.backend} is not available yet; definitions are kept in the database"
        )
    return tuple(
        Problem(severity=Severity.WARNING, path=where, line=1, column=1, file_name=path.name, message=message)
        for where, message in messages.items()
    )


def _managed_signature() -> str:
    """Return the signature of both stores; empty before the migrations have made their tables."""
    try:
        return signatures(*KINDS)
    except DatabaseError:
        if all(configuration.table_exists(model._meta.db_table) for model in MODELS.values()):
            raise
        return ""


def _skill_names(config: Config, path: Path) -> tuple[str, ...]:
    folder = path.parent / config.skills.path
    try:
        return tuple(sorted(found.parent.name for found in folder.glob("*/SKILL.md")))
    except OSError:
        return ()
