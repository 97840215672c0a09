"""Async subagents as deepagents writes them: TOML of its command line, JSON, or the Python that builds the list.

Python is parsed and never run: only literals count, and calls of AsyncSubAgent with keywords.
"""

from __future__ import annotations

import ast
import json
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.text import shorten
from subagents.errors import InvalidDefinition
from subagents.remote_agents import validate_remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from subagents.remote_agents import RemoteAgent

_CALLS: Final = frozenset({"AsyncSubAgent", "dict"})
_SECTION: Final = "async_subagents"
_LONGEST: Final = 1 << 20


class NotRead(ValueError):
    """The file holds no list of async subagents; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One entry of the file: the agent, or what is wrong with it. `document` is what would be stored."""

    name: str
    document: dict[str, Any] = field(repr=False)  # may hold secrets
    agent: RemoteAgent | None = None
    problems: tuple[str, ...] = ()


def read_async_subagents(raw: bytes, file_name: str) -> tuple[Reading, ...]:
    """Read every entry, each for itself. Raises NotRead when there are none to be found."""
    if len(raw) > _LONGEST:
        raise NotRead("the file is larger than 1 MB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise NotRead(f"not UTF-8 at byte {fault.start}") from None
    ending = file_name.rpartition(".")[2].lower()
    try:
        found = list({"toml": _toml, "json": _json, "py": _python}.get(ending, _python)(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as fault:
        raise NotRead(shorten(f"not {ending or 'Python'}: {fault}", 300)) from None
    if not found:
        raise NotRead("there are no async subagents in it")
    return tuple(_reading(entry) for entry in found)


def _reading(entry: object) -> Reading:
    document = dict(entry) if isinstance(entry, dict) else {}
    name = str(document.get("name", ""))[:100]
    try:
        return Reading(name, document, agent=validate_remote(entry))
    except InvalidDefinition as refused:
        return Reading(name, document, problems=tuple(map(str, refused.reasons)))


def _toml(text: str) -> Iterator[object]:
    section = tomllib.loads(text).get(_SECTION, {})
    if isinstance(section, dict):
        for name, entry in section.items():
            yield {"name": name, **entry} if isinstance(entry, dict) else entry
    else:
        yield from section if isinstance(section, list) else ()


def _json(text: str) -> Iterator[object]:
    value = json.loads(text)
    yield from _listed(value.get(_SECTION, value) if isinstance(value, dict) else value)


def _python(text: str) -> Iterator[object]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.List):
            entries = [_entry(item) for item in node.elts]
            yield from (entry for entry in entries if isinstance(entry, dict) and "graph_id" in entry)


def _entry(node: ast.expr) -> object:
    try:
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _CALLS:
            return {key.arg: ast.literal_eval(key.value) for key in node.keywords if key.arg}
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None  # made by a program: nobody here knows what it would be


def _listed(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    return (
        [{"name": name, **entry} for name, entry in value.items() if isinstance(entry, dict)]
        if isinstance(value, dict)
        else []
    )
