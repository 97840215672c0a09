"""From an entry of langgraph.json to a graph that can run. Runs the operator's code: in workers only.

Each file is executed once per process and again when it has changed. A graph that cannot be had is one GraphBroken
with a sentence; its traceback goes to the log.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import logging
import os
import sys
import threading
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.text import clean, shorten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from engine.graphs.file import GraphEntry, GraphsFile

logger = logging.getLogger(__name__)
_LONGEST_REASON = 300
_SHORTEST_SECRET = 6  # shorter values are no secrets, and would blacken ordinary words
_lock = threading.RLock()


class GraphBroken(Exception):
    """A graph that cannot be loaded; its sentence is for people and holds no secret."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a module offers under the name: a compiled graph, or a factory that makes one for each run."""

    target: Any
    is_factory: bool
    signature: str
    description: str = ""


class Graphs:
    """The graphs of one langgraph.json as this process has loaded them."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, str], Loaded | GraphBroken] = {}
        self._signatures: dict[tuple[Path, str], str] = {}
        self._prepared: set[tuple[Path, str]] = set()
        self._secrets: tuple[str, ...] = ()

    def load(self, file: GraphsFile, entry: GraphEntry, folder: Path) -> Loaded:
        """The graph of an entry. Raises GraphBroken, again and again for one that has not changed since it failed.

        Blocks while the module is imported: call it from a thread.
        """
        if entry.problems:
            raise GraphBroken(entry.problems[0])
        key, signature = (folder, entry.name), self.signature(entry, folder)
        with _lock:
            if self._signatures.get(key) != signature:
                self._prepare(file, folder)
                self._loaded[key] = self._try(entry, folder, signature)
                self._signatures[key] = signature
            found = self._loaded[key]
        if isinstance(found, GraphBroken):
            raise GraphBroken(str(found))
        return found

    @staticmethod
    def signature(entry: GraphEntry, folder: Path) -> str:
        """Changes when what the entry names does: its line in langgraph.json, or its file."""
        stamp: tuple[object, ...] = ()
        if entry.path.endswith(".py"):
            try:
                found = (folder / entry.path).stat()
                stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            except (OSError, ValueError):
                stamp = ("missing",)
        text = repr((str(folder), entry.path, entry.attribute, entry.problems, stamp))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def redacted(self, text: str) -> str:
        """Words of a graph's code without the values of its `env`."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return shorten(" ".join(clean(text).split()), _LONGEST_REASON)

    def _try(self, entry: GraphEntry, folder: Path, signature: str) -> Loaded | GraphBroken:
        try:
            return _offered(_attribute(_module(entry, folder), entry), entry, signature)
        except GraphBroken as broken:
            return broken
        except (Exception, SystemExit) as fault:  # whatever a module does when it is imported
            logger.exception("graph %s: %s cannot be imported", entry.name, entry.target)
            return GraphBroken(self.redacted(f"{entry.target} cannot be imported: {type(fault).__name__}: {fault}"))

    def _prepare(self, file: GraphsFile, folder: Path) -> None:
        """Make its folders importable and set its variables; those that are set already stay as they are."""
        for place in (".", *file.dependencies):
            found = str((folder / place).resolve())
            if found not in sys.path:
                sys.path.append(found)  # behind ours: no module of a graph takes the place of one of this program
        variables = _variables(file, folder)
        secrets = {value for value in variables.values() if len(value) >= _SHORTEST_SECRET}
        self._secrets = tuple(sorted(secrets, key=len, reverse=True))
        for name, value in variables.items():
            os.environ.setdefault(name, value)


def _variables(file: GraphsFile, folder: Path) -> Mapping[str, str]:
    if not file.env_file:
        return file.env
    from dotenv import dotenv_values

    try:
        found = dotenv_values(folder / file.env_file, interpolate=False, encoding="utf-8")
    except (OSError, ValueError) as fault:
        logger.warning("the env file of langgraph.json cannot be read: %s", type(fault).__name__)
        return {}
    return {name: value for name, value in found.items() if value is not None}


def _module(entry: GraphEntry, folder: Path) -> Any:
    if not entry.path.endswith(".py"):
        return importlib.import_module(entry.path)
    path = (folder / entry.path).resolve()
    if not path.is_file():
        raise GraphBroken(f"{entry.path}: there is no such file")
    # The same name in every process: values of classes of the module name it in checkpoints.
    name = f"deerflow_graph_{hashlib.sha256(entry.path.encode()).hexdigest()[:12]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        raise
    return module


def _attribute(module: Any, entry: GraphEntry) -> Any:
    found = module
    for part in entry.attribute.split("."):
        if not hasattr(found, part):
            raise GraphBroken(f"{entry.path} has no {entry.attribute}")
        found = getattr(found, part)
    return found


def _offered(found: Any, entry: GraphEntry, signature: str) -> Loaded:
    graph = as_graph(found)
    if graph is not None:
        return Loaded(graph, False, signature, entry.description)
    if callable(found) and not inspect.isclass(found):
        if len(_required(found)) > 1:
            raise GraphBroken(f"{entry.target} takes more than a config; a factory takes one argument or none")
        return Loaded(found, True, signature, entry.description)
    kind = type(found).__name__
    raise GraphBroken(f"{entry.target} is a {kind}, which is neither a graph nor a function that makes one")


def as_graph(found: Any) -> Any:
    """A compiled graph as it is, a StateGraph compiled, None for anything else."""
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    if isinstance(found, Pregel):
        return found
    return found.compile() if isinstance(found, StateGraph) else None


def _required(function: Any) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.kind in kinds and one.default is one.empty]


def _wants_config(function: Any) -> bool:
    return bool(_required(function)) or "config" in inspect.signature(function).parameters


@asynccontextmanager
async def opened(loaded: Loaded, config: Mapping[str, Any]) -> AsyncIterator[Any]:
    """The graph for one run: the module's own, or what its factory makes of `config`. Raises GraphBroken."""
    if not loaded.is_factory:
        yield loaded.target
        return
    factory = loaded.target
    made = factory(config) if _wants_config(factory) else factory()
    if inspect.isawaitable(made):
        made = await made
    if isinstance(made, AbstractAsyncContextManager) and as_graph(made) is None:
        async with made as inner:
            yield _made(inner)
    elif isinstance(made, AbstractContextManager) and as_graph(made) is None:
        with made as inner:
            yield _made(inner)
    else:
        yield _made(made)


def _made(made: Any) -> Any:
    graph = as_graph(made)
    if graph is None:
        raise GraphBroken(f"its factory made a {type(made).__name__}, which is no graph")
    return graph
