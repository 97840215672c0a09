"""langgraph.json: which graphs there are, where they stand, and everything that is wrong with the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from engine.config.errors import KeyPath, Problem, Severity, format_path, quoted
from engine.graphs.placed_json import Pairs, Placed, Unreadable, place, read
from engine.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME: Final = "langgraph.json"
MAX_DESCRIPTION: Final = 2_000
RESERVED: Final = frozenset({"lead-agent"})  # as `spoken`: the default lead
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ: Final = ("graphs", "dependencies", "env")
# Keys of the public schema that mean something to other servers and nothing here.
_KNOWN_UNUSED: Final[Mapping[str, str]] = {
    "checkpointer": "graphs keep their checkpoints in this deployment's database",
    "store": "graphs get no store here",
    "http": "no routes are added to this deployment",
    "auth": "this deployment's API keys decide who may come in",
    "ui": "no user interface is served from it",
    "ui_config": "no user interface is served from it",
    "webhooks": "webhooks follow this deployment's policy",
    **dict.fromkeys(
        (
            "$schema",
            "python_version",
            "node_version",
            "pip_config_file",
            "pip_installer",
            "dockerfile_lines",
            "base_image",
            "image_distro",
            "api_version",
            "keep_pkg_tools",
            "encryption",
            "source",
            "_INTERNAL_docker_tag",
        ),
        "",
    ),
}
_OTHER_LANGUAGES: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEntry:
    """One graph as the file names it. With `problems` it cannot run, and `path` may be as it was written."""

    name: str
    path: str = ""  # of the module: a file relative to langgraph.json's folder, or a dotted module name
    attribute: str = ""
    description: str = ""
    line: int = 1
    problems: tuple[str, ...] = ()  # each with its place

    @property
    def target(self) -> str:
        return f"{self.path}:{self.attribute}" if self.attribute else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphsFile:
    """What a langgraph.json says. `env_file` or `env` holds secrets: never shown, never logged."""

    graphs: tuple[GraphEntry, ...] = ()
    dependencies: tuple[str, ...] = ()
    env_file: str = ""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()

    @property
    def refused(self) -> bool:
        return any(problem.severity is Severity.REFUSED for problem in self.problems)


def spoken(name: str) -> str:
    """The name as models write it: case makes no difference, nor does `_` for `-`."""
    return name.lower().replace("_", "-")


def read_graphs(raw: bytes, *, file_name: str = FILE_NAME) -> GraphsFile:
    """Read a whole file and report all that is wrong with it at once; never raises for what it holds.

    What is no JSON object, or has no usable `graphs`, refuses the file. Whatever is wrong with one graph makes that
    graph unusable and leaves the others. A name that stands there twice names no graph: which one is meant is a guess.
    """
    try:
        document, text = read(raw)
    except Unreadable as fault:
        problem = Problem(Severity.REFUSED, "", fault.line, fault.column, str(fault), file_name)
        return GraphsFile(problems=(problem,))
    return _Reader(text, file_name).file(document)


class _Reader:
    def __init__(self, text: str, file_name: str) -> None:
        self._text, self._file_name = text, file_name
        self._problems: list[Problem] = []

    def file(self, document: Placed) -> GraphsFile:
        if not isinstance(document.value, Pairs):
            self._say(Severity.REFUSED, (), document, "expected an object with the key graphs")
            return GraphsFile(problems=tuple(self._problems))
        top = self._top(document)
        graphs = self._graphs(top.get("graphs"), document)
        env_file, env = self._env(top.get("env"))
        return GraphsFile(
            graphs=graphs,
            dependencies=self._dependencies(top.get("dependencies")),
            env_file=env_file,
            env=env,
            problems=tuple(sorted(self._problems, key=lambda problem: (problem.line, problem.column))),
        )

    def _top(self, document: Placed) -> dict[str, Placed]:
        found: dict[str, Placed] = {}
        for key, value in document.value:
            if key in found:
                first = self._line(found[key])
                self._say(Severity.REFUSED, (key,), value, f"it stands here twice, first in line {first}")
            elif key in _READ:
                found[key] = value
            elif key in _KNOWN_UNUSED:
                found[key] = value
                if why := _KNOWN_UNUSED[key]:
                    self._say(Severity.WARNING, (key,), value, f"this has no effect here: {why}")
            else:
                near = get_close_matches(key, _READ, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self._say(Severity.WARNING, (key,), value, f"this key is not known{hint}")
        return found

    def _graphs(self, section: Placed | None, document: Placed) -> tuple[GraphEntry, ...]:
        if section is None:
            self._say(Severity.REFUSED, ("graphs",), document, "this key is missing")
            return ()
        if not isinstance(section.value, Pairs):
            self._say(Severity.REFUSED, ("graphs",), section, "expected an object: name to path")
            return ()
        places: dict[str, list[Placed]] = {}
        for key, value in section.value:
            places.setdefault(key, []).append(value)
        spellings: dict[str, str] = {}
        return tuple(self._graph(name, values, spellings) for name, values in places.items())

    def _graph(self, name: str, values: list[Placed], spellings: dict[str, str]) -> GraphEntry:
        """One graph. `spellings` holds the names so far as a model may write them, which must differ too."""
        problems: list[str] = []

        def wrong(value: Placed, message: str, *inner: str) -> None:
            problems.append(str(self._say(Severity.ENTRY, ("graphs", name, *inner), value, message)))

        first = values[0]
        if len(values) > 1:
            lines = ", ".join(str(self._line(value)) for value in values)
            wrong(values[1], f"this name stands here {len(values)} times, in lines {lines}; it names none of them")
        if not _NAME.fullmatch(name):
            wrong(first, "a name has 1 to 64 letters a-z, digits, hyphens and underscores, the last two within it only")
        elif spoken(name) in RESERVED:
            wrong(first, "this name belongs to the default lead agent")
        elif (other := spellings.setdefault(spoken(name), name)) != name:
            wrong(first, f"it cannot be told from {other}: case, - and _ make no difference in what a model writes")
        target, description = self._target(first, wrong)
        path, attribute = _split(target, lambda message: wrong(first, message)) if target is not None else ("", "")
        return GraphEntry(
            name=clean(name),
            path=path,
            attribute=attribute,
            description=description,
            line=self._line(first),
            problems=tuple(problems),
        )

    def _target(self, value: Placed, wrong: Any) -> tuple[str | None, str]:
        """The text "path:attribute", and the description of the object form."""
        if isinstance(value.value, str):
            return value.value, ""
        if not isinstance(value.value, Pairs):
            wrong(value, "expected a path, or an object with path and description")
            return None, ""
        fields: dict[str, Placed] = {}
        for key, inner in value.value:
            if key in fields:
                wrong(inner, "it stands here twice", key)
            fields[key] = inner
        described = fields.get("description", Placed("", 0)).value
        if not isinstance(described, str):
            wrong(fields["description"], "expected text", "description")
            described = ""
        path = fields.get("path")
        if path is None or not isinstance(path.value, str):
            wrong(path or value, "expected a path", "path")
            return None, ""
        return path.value, clean(described.strip())[:MAX_DESCRIPTION]

    def _dependencies(self, value: Placed | None) -> tuple[str, ...]:
        """The folders among them; packages are installed by whoever operates this deployment."""
        if value is None:
            return ()
        items = value.value
        if not isinstance(items, list) or isinstance(items, Pairs) or not all(isinstance(i.value, str) for i in items):
            self._say(Severity.REFUSED, ("dependencies",), value, "expected a list of texts")
            return ()
        return tuple(item.value for item in items if item.value == "." or item.value.startswith(("./", "../", "/")))

    def _env(self, value: Placed | None) -> tuple[str, dict[str, str]]:
        """A file's name, or names with values. No value is ever repeated in a message."""
        if value is None:
            return "", {}
        if isinstance(value.value, str):
            return value.value.strip(), {}
        if not isinstance(value.value, Pairs):
            self._say(Severity.REFUSED, ("env",), value, "expected the name of a file, or an object of texts")
            return "", {}
        env: dict[str, str] = {}
        for key, inner in value.value:
            if key in env:
                self._say(Severity.REFUSED, ("env", key), inner, "it stands here twice")
            elif not (isinstance(inner.value, str) and "\0" not in inner.value and _VARIABLE.fullmatch(key)):
                self._say(Severity.REFUSED, ("env", key), inner, "expected a variable's name with a text")
            else:
                env[key] = inner.value
        return "", env

    def _line(self, value: Placed) -> int:
        return place(self._text, value.offset)[0]

    def _say(self, severity: Severity, path: KeyPath, at: Placed, message: str) -> Problem:
        line, column = place(self._text, at.offset)
        problem = Problem(severity, format_path(path), line, column, message, self._file_name)
        self._problems.append(problem)
        return problem


def _split(target: str, wrong: Any) -> tuple[str, str]:
    """ "./path.py:attribute" as (path, attribute); what cannot be one is said."""
    path, colon, attribute = target.rpartition(":")
    if not colon:
        wrong(f"expected path:name, as in ./graph.py:graph, got {quoted(target)}")
        return target, ""
    if path.lower().endswith(_OTHER_LANGUAGES):
        wrong("only graphs written in Python can run here")
    elif "\\" in path:
        wrong(f"write the path with /, not with \\: {quoted(path)}")
    elif not path.strip() or "\0" in path or (path.endswith(".py") and not PurePosixPath(path).stem.strip(".")):
        wrong(f"expected the path of a Python file, got {quoted(path)}")
    elif not path.endswith(".py") and not all(part.isidentifier() for part in path.split(".")):
        wrong(f"expected the path of a Python file or a module's name, got {quoted(path)}")
    elif not all(part.isidentifier() for part in attribute.split(".")):
        wrong(f"expected the name of a variable or function after the colon, got {quoted(attribute)}")
    return path, attribute
