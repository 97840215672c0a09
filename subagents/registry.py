"""Who exists and who may run, now: the one place that gathers the facts of file, store and sandbox."""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from django.conf import settings
from django.db import DatabaseError

from engine.config.errors import Problem, Severity
from engine.graphs.file import spoken
from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from engine.sandbox.base import Availability
from engine.tools.names import KNOWN_TOOLS
from subagents import configuration, graphs, remote_entries, sources
from subagents.agent_entries import AgentEntry, build_agents
from subagents.builtins import BUILTINS
from subagents.catalogue import Catalogue, Entry, Gate, Known, State, build_catalogue
from subagents.definitions import Definition, Source
from subagents.errors import UnknownAgent
from subagents.graphs import RegisteredGraphs
from subagents.kinds import AGENT, KINDS, REMOTE, SUBAGENT, Item, Kind
from subagents.leads import DEFAULT, DEFAULT_LEAD, LeadDefinition, lead_of, lead_of_graph
from subagents.lint import remarks
from subagents.matching import Refusal, match, refuse
from subagents.stores.base import Contents, Store
from subagents.stores.database import MODELS, DatabaseStore, signatures
from subagents.stores.file import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.config.schema import Config
    from engine.sandbox.base import Sandbox
    from engine.sandbox.factory import Provider
    from subagents.custom_agents import CustomAgent
    from subagents.remote_agents import RemoteAgent
    from subagents.remote_entries import RemoteEntry

Backend = Literal["db", "file"]

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
    graphs: RegisteredGraphs = field(default_factory=RegisteredGraphs)
    remotes: tuple[RemoteEntry, ...] = ()  # remote agents of both sources, by name

    def remote(self, name: str) -> RemoteEntry | None:
        """Return the remote agent that is called under this name now; None for any other callable."""
        holder = self.catalogue.runnable.get(name)
        if holder is None or holder.source is not Source.REMOTE:
            return None
        return next((entry for entry in self.remotes if entry.name == name and entry.runnable), None)

    def lead(self, agent: str) -> LeadDefinition:
        """Return the default lead, an enabled custom agent or a graph. Raises UnknownAgent, also for a broken one.

        A custom agent holds its name, whether it runs or not: no graph takes its place.
        """
        if agent == DEFAULT_LEAD:
            return DEFAULT
        entry = next((entry for entry in self.agents if spoken(entry.name) == spoken(agent)), None)
        if entry is not None and entry.runnable and entry.name == agent:
            return lead_of(entry.agent)
        graph = next((one for one in self.graph_leads if spoken(one.name) == spoken(agent)), None)
        if graph is None:
            raise UnknownAgent(agent)
        return lead_of_graph(graph.definition)

    @property
    def graph_leads(self) -> tuple[Entry, ...]:
        """The graphs that can be talked to."""
        taken = {spoken(entry.name) for entry in self.agents}
        found = (entry for entry in self.catalogue.runnable.values() if entry.source is Source.GRAPH)
        return tuple(entry for entry in found if spoken(entry.name) not in taken)


class Observer:
    """What one process knows, looked up again when it is older than asked for.

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

    def current(self, *, max_age: float = RECHECK_SECONDS, fresh: bool = False) -> Registry:
        """See the module's `current`."""
        path = Path(settings.CONFIG_FILE)
        known, age = self._registry, self._clock() - self._looked_at
        if known is not None and not fresh and self._path == path and age < max_age:
            return known
        with self._lock:
            accepted, new_good_file = self._configuration(path, fresh=fresh)
            registry = self._look(path, accepted, fresh=fresh)
        self._remember(new_good_file)
        return registry

    def accepted(self) -> configuration.Accepted:
        """Return the configuration in force now, and leave everything else as it is known."""
        path = Path(settings.CONFIG_FILE)
        with self._lock:
            accepted, new_good_file = self._configuration(path, fresh=False)
        self._remember(new_good_file)
        return accepted

    def forget(self) -> None:
        """See the module's `forget`."""
        with self._lock:
            self._path = None

    def _configuration(self, path: Path, *, fresh: bool) -> tuple[configuration.Accepted, configuration.Reading | None]:
        """Look at the file. Also returns the reading of a good one that was not in force before."""
        reading = configuration.look(path, self._reading, fresh=fresh, log=not self._read_only)
        self._reading = reading  # also of a file that leaves nothing to run with: it is reported only once
        before, self._accepted = self._accepted, configuration.accept(reading, self._accepted)
        is_new = before is None or self._accepted.sha256 != before.sha256
        return self._accepted, reading if is_new and not self._accepted.refused else None

    def _remember(self, new_good_file: configuration.Reading | None) -> None:
        # Outside the lock: writing may wait for the transaction of a thread that waits for the lock.
        if new_good_file is not None and not self._read_only:
            configuration.remember(new_good_file)

    def _look(self, path: Path, accepted: configuration.Accepted, *, fresh: bool) -> Registry:
        backend = accepted.config.agent_storage.backend
        stored = _signature(backend, fresh=fresh)
        gate = Availability(ok=True) if self._read_only else bash_gate(accepted.config)
        skills = _skill_names(accepted.config, path)
        registered = graphs.look(accepted.config, path)
        seen = (str(path), accepted.reading.sha256, accepted.sha256, stored, gate.ok, gate.reason)
        facts = (*seen, registered.signature, *skills)
        signature = sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()
        registry = self._registry
        if registry is None or registry.signature != signature:
            subagents = open_store(SUBAGENT, backend).all() if stored else Contents()
            agents = open_store(AGENT, backend).all() if stored else Contents()
            remotes = open_store(REMOTE, backend).all() if stored else Contents()
            registry = _build(accepted, subagents, agents, remotes, registered, gate, skills, signature)
        self._registry, self._path = registry, path
        self._looked_at = self._clock()
        return registry


_observer = Observer()


def current(*, max_age: float = RECHECK_SECONDS, fresh: bool = False) -> Registry:
    """Return the registry as of at most `max_age` seconds ago; 0 looks at configuration and stores at once.

    A look costs one stat and one small query, or one stat for each file of the file backend; nothing is read or
    rebuilt unless something changed. `fresh` reads everything again, also a file that looks unchanged: for a person
    who asks to reload, not for every call. Touches the database: call it from a thread. Raises ConfigRefused when
    the file is refused and no good one was ever accepted.
    """
    return _observer.current(max_age=max_age, fresh=fresh)


def forget() -> None:
    """Make the next `current()` look again. For whoever has just changed something, and for tests."""
    _observer.forget()


def lead(agent: str, *, now: Registry | None = None) -> LeadDefinition:
    """Return the lead that runs under this assistant id: the default one or an enabled custom agent.

    Looks at once, or at `now`. Raises UnknownAgent for one that is missing, switched off or broken.
    """
    if agent == DEFAULT_LEAD:
        return DEFAULT
    return (now or current(max_age=0)).lead(agent)


def resolve_dispatch(
    name_from_model: object, *, allowed: Sequence[str], now: Registry | None = None, in_background: bool = False
) -> Entry | Refusal:
    """Return the entry that a delegation shall run, or the refusal that the model is told.

    `allowed` is the run's snapshot; `now` a registry that was looked up just now for several calls of one moment.
    Remote agents are called `in_background` only.
    State is looked up at this moment: what has been disabled, shadowed, removed or has lost its sandbox since
    is refused. A refusal names permitted subagents only.
    Source: product.md §4.
    """
    catalogue = (now or current(max_age=0)).catalogue
    runnable = {name: entry for name, entry in catalogue.runnable.items() if in_background or entry.works_here}
    permitted = [name for name in dict.fromkeys(allowed) if name in runnable]
    meant = match(name_from_model, permitted)
    if isinstance(meant, str):
        return runnable[meant]
    once_allowed = match(name_from_model, allowed)
    if isinstance(once_allowed, Refusal):
        return meant
    if once_allowed in catalogue.runnable:
        return refuse(name_from_model, permitted, because=f"{once_allowed} works elsewhere: task cannot call it.")
    holder = catalogue.holder(once_allowed)
    why = _UNAVAILABLE.get(holder.state, "") if holder else ""
    return refuse(name_from_model, permitted, because=f"{once_allowed} is not available: {why or 'it is gone.'}")


def store(kind: Kind[Item]) -> Store[Item]:
    """Return the store of a kind, of the backend that the configuration in force names at this moment."""
    return open_store(kind, _observer.accepted().config.agent_storage.backend)


def reserved_for(name: str) -> Source | None:
    """Return the source stronger than managed definitions that holds a name now, readable or not."""
    if any(definition.name == name for definition in BUILTINS):
        return Source.BUILTIN
    accepted = _observer.accepted()
    broken = sources.invalid_definitions(accepted.source.invalid_entries)
    configured = (*accepted.config.subagents.custom_agents, *(item.name for item in broken))
    return Source.CONFIG if name in configured else None


def holder_of(name: str) -> Source | None:
    """Return the source that holds a name which a remote agent may not take, readable or not."""
    now = current(max_age=0)
    holder = now.catalogue.holder(name)
    if holder is not None and holder.source is not Source.REMOTE:
        return holder.source
    return next((Source.CONFIG for one in now.remotes if one.name == name and one.source is Source.CONFIG), None)


def open_store(kind: Kind[Item], backend: Backend) -> Store[Item]:
    """Return the store of a kind that a backend keeps, whether it is in force or not."""
    if backend == "file":
        return FileStore(kind, Path(settings.DEER_FLOW_HOME))
    return DatabaseStore(kind)


def bash_gate(config: Config) -> Gate:
    """Say whether bash can run safely under this configuration. Fails closed: not knowing is no."""
    try:
        return sandbox(config).available()
    except Exception:
        logger.exception("the sandbox could not be probed; bash stays hidden")
        return Availability(ok=False, reason=Reason(_("It could not be found out whether commands can run safely.")))


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
    remotes: Contents[RemoteAgent],
    registered: RegisteredGraphs,
    gate: Gate,
    skills: tuple[str, ...],
    signature: str,
) -> Registry:
    config, invalid = accepted.config, accepted.source.invalid_entries
    known = _known(config, skills)
    remote = remote_entries.remote_entries(config, invalid, remotes.items, remotes.invalid, os.environ)
    definitions = (
        *BUILTINS,
        *sources.config_definitions(config),
        *subagents.items,
        *registered.definitions,
        *remote_entries.definitions(remote),
    )
    catalogue = build_catalogue(
        definitions,
        config,
        invalid=(
            *sources.invalid_definitions(invalid),
            *subagents.invalid,
            *registered.invalid,
            *remote_entries.invalid(remote),
        ),
        broken_overrides=sources.broken_overrides(invalid),
        bash=gate,
        known=known,
        remarks=remarks(definitions),
        unavailable=remote_entries.unavailable(remote),
    )
    return Registry(
        config=config,
        catalogue=catalogue,
        problems=(
            *accepted.reading.result.problems,
            *_unsupported(config, accepted.reading.path),
            *(problem for problem in registered.file.problems if problem.severity is not Severity.ENTRY),
        ),
        config_refused=accepted.refused,
        signature=signature,
        skills=skills,
        agents=build_agents(agents.items, agents.invalid, catalogue, known),
        graphs=registered,
        remotes=remote_entries.in_catalogue(remote, catalogue),
    )


def _known(config: Config, skills: tuple[str, ...]) -> Known:
    return Known(
        # What MCP servers offer is known only to whoever has connected to them.
        tools=None if config.mcp_servers else (*KNOWN_TOOLS, *(tool.name for tool in config.tools)),
        models=tuple(model.name for model in config.models),
        skills=skills,
    )


def _unsupported(config: Config, path: Path) -> tuple[Problem, ...]:
    """What the file asks for and this version does not do yet: said, never passed over in silence."""
    asked: dict[str, bool] = {
        "tools": bool(config.tools),
        "mcp_servers": bool(config.mcp_servers),
        "async_subagents": bool(config.async_subagents),
        "acp_agents": bool(config.acp_agents),
    }
    message = Reason(_("this has no effect in this version yet"))
    return tuple(
        Problem(severity=Severity.WARNING, path=where, line=1, column=1, file_name=path.name, message=message)
        for where, is_asked in asked.items()
        if is_asked
    )


def _signature(backend: Backend, *, fresh: bool) -> str:
    """Return the signature of both stores; empty before the migrations have made their tables."""
    if backend == "file":
        return " ".join(("file", *(open_store(kind, backend).signature(fresh=fresh) for kind in KINDS)))
    try:
        return f"db {signatures(*KINDS)}"
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
