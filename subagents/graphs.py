"""The graphs of langgraph.json as entries of the catalogue. Workers load them and report; nobody else does."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError
from django.utils import timezone

from engine.config.errors import Problem, Severity
from engine.graphs.file import GraphEntry, GraphsFile, read_graphs
from engine.graphs.loading import Graphs
from engine.text import clean, shorten
from subagents import configuration
from subagents.catalogue import Invalid
from subagents.definitions import Definition, Source
from subagents.models import GraphLoad

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.schema import Config

_NONE: Final = GraphsFile()
_LONGEST_DESCRIPTION: Final = 2_000


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker said of a graph."""

    signature: str
    error: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredGraphs:
    """langgraph.json as it is now, with what workers reported. `folder` is where its paths begin."""

    file: GraphsFile = _NONE
    folder: Path = field(default_factory=Path)
    loads: Mapping[str, Load] = field(default_factory=dict)  # only those that are of the files as they are now

    @property
    def signature(self) -> str:
        """Changes when the file, or what workers say of it, does."""
        if not self.file.graphs and not self.file.problems:
            return ""
        said = sorted((name, load.signature, load.error, load.description) for name, load in self.loads.items())
        named = [(entry.name, entry.description) for entry in self.file.graphs]
        return repr((self.files_signature, named, list(map(str, self.file.problems)), said))

    @property
    def files_signature(self) -> str:
        """Changes when there is something else to load."""
        return " ".join(Graphs.signature(entry, self.folder) for entry in self.file.graphs)

    def entry(self, name: str) -> GraphEntry | None:
        return next((entry for entry in self.file.graphs if entry.name == name), None)

    def error_of(self, entry: GraphEntry) -> str:
        """Why the graph cannot run; empty when it can, or nobody has tried since it changed."""
        if entry.problems:
            return entry.problems[0]
        return self.loads[entry.name].error if entry.name in self.loads else ""

    @property
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(self._definition(entry) for entry in self.file.graphs if not self.error_of(entry))

    @property
    def invalid(self) -> tuple[Invalid, ...]:
        broken = ((entry, self.error_of(entry)) for entry in self.file.graphs)
        return tuple(
            Invalid(source=Source.GRAPH, name=entry.name, problems=entry.problems or (error,))
            for entry, error in broken
            if error
        )

    def _definition(self, entry: GraphEntry) -> Definition:
        told = self.loads[entry.name].description if entry.name in self.loads else ""
        described = entry.description or told or f"Runs the graph {entry.name} ({entry.target} of langgraph.json)."
        return Definition(
            name=entry.name,
            source=Source.GRAPH,
            description=shorten(described, _LONGEST_DESCRIPTION),
            system_prompt="",
        )


def look(config: Config, config_file: Path) -> RegisteredGraphs:
    """Read what is registered now. Costs one stat while there is no such file; never raises for what it holds."""
    path = config_file.parent / config.langgraph_json
    try:
        found = path.stat()
    except (OSError, ValueError):
        return RegisteredGraphs()
    file = _read(path, (found.st_mtime_ns, found.st_size, found.st_ino))
    folder = path.parent.resolve()
    return RegisteredGraphs(file=file, folder=folder, loads=_loads(file, folder))


@lru_cache(maxsize=4)
def _read(path: Path, _stamp: tuple[int, ...]) -> GraphsFile:
    try:
        return read_graphs(path.read_bytes(), file_name=path.name)
    except OSError as fault:
        why = f"it cannot be read: {fault.strerror or type(fault).__name__}"
        return GraphsFile(problems=(Problem(Severity.REFUSED, "", 1, 1, why, path.name),))


def _loads(file: GraphsFile, folder: Path) -> dict[str, Load]:
    if not file.graphs:
        return {}
    now = {entry.name: Graphs.signature(entry, folder) for entry in file.graphs}
    try:
        rows = list(GraphLoad.objects.filter(name__in=now).values_list("name", "signature", "error", "description"))
    except DatabaseError:
        if configuration.table_exists(GraphLoad._meta.db_table):
            raise
        return {}
    return {name: Load(*rest) for name, *rest in rows if rest[0] == now[name]}


def report(name: str, signature: str, *, error: str = "", description: str = "", worker: str = "") -> None:
    """Say what came of loading a graph. Written only when it is news."""
    said = {"signature": signature, "error": clean(error), "description": clean(description)[:_LONGEST_DESCRIPTION]}
    if not GraphLoad.objects.filter(name=name, **said).exists():
        more = {"worker": worker, "loaded_at": timezone.now()}
        GraphLoad.objects.update_or_create(name=name, defaults={**said, **more})
