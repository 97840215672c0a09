"""The header of a Markdown file, between two lines of three hyphens: read as YAML, else line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.config import nodes
from engine.config.errors import quoted
from engine.config.nodes import Fault, MappingNode, Node, ScalarNode, Unreadable
from engine.config.tree import plant

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(?=[ \t]|$)")
_RULE: Final = "---"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One entry of a header. `value` is made of dict, list, str, int, float, bool and None; lines count from 1.

    `faults` say what about the value no two YAML readers agree on. `as_text`: it was no YAML and was taken as written.
    """

    key: str
    line: int
    value: object
    faults: tuple[Fault, ...] = ()
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A header's entries in their order, and what follows it: leading blank lines off, the rest byte for byte."""

    fields: tuple[Field, ...]
    body: str


def read(raw: bytes, *, known: Container[str]) -> Document:
    """Split and read a file. `known`: the keys, as `plain_key` gives them, that may begin an entry of a broken header.

    Raises Unreadable with every place when the file is no text, has no header, or its header says one thing twice.
    """
    lines = [line for line in _LINE.findall(nodes.decode(raw)) if line]
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if not lines or lines[first].rstrip() != _RULE:
        raise Unreadable(Fault(first + 1, 1, "no front matter: the file does not begin with a line of three hyphens"))
    last = next((index for index in range(first + 1, len(lines)) if lines[index].rstrip() == _RULE), None)
    if last is None:
        raise Unreadable(Fault(first + 1, 1, "the front matter is not closed by a second line of three hyphens"))
    fields = tuple(_fields(lines[first + 1 : last], first + 1, known))
    _refuse_doubles(fields)
    return Document(fields, _without_blank_lines("".join(lines[last + 1 :])))


def plain_key(key: str) -> str:
    """`maxTurns`, `max-turns` and `max_turns` are one key: `maxturns`."""
    return re.sub("[-_ ]", "", key).lower()


def _fields(lines: list[str], before: int, known: Container[str]) -> Iterator[Field]:
    """Read the lines of a header that `before` lines stand above."""
    try:
        yield from _as_yaml("".join(lines), before)
    except Unreadable:
        starts = [index for index, line in enumerate(lines) if _begins_a_known_field(line, known)]
        if not starts:
            raise
        if any(line.strip() for line in lines[: starts[0]]):
            raise
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            yield from _one_field(lines[start:end], before + start)


def _as_yaml(text: str, before: int) -> list[Field]:
    # Blank lines above make the parser count as the file does.
    root = nodes.parse("\n" * before + text)
    if root is None:
        return []
    if not isinstance(root, MappingNode):
        raise Unreadable(Fault(before + 1, 1, "the front matter must hold names and values"))
    return [_planted(key, value) for key, value in root.pairs]


def _planted(key: Node, value: Node) -> Field:
    if not isinstance(key, ScalarNode):
        raise Unreadable(Fault(key.line, key.column, "a key must be text"))
    tree = plant(value)
    faults = tuple(Fault(found.line, found.column, found.message) for found in tree.findings)
    # `plant` gives an empty mapping for a value that is not there.
    planted = None if tree.value == {} and not isinstance(value, MappingNode) else tree.value
    return Field(key=key.text, line=key.line, value=planted, faults=faults)


def _begins_a_known_field(line: str, known: Container[str]) -> bool:
    found = _FIELD.match(line)
    return found is not None and plain_key(found[1]) in known


def _one_field(lines: list[str], before: int) -> list[Field]:
    try:
        return _as_yaml("".join(lines), before)
    except Unreadable:
        found = _FIELD.match(lines[0])
        if found is None:
            raise
        text = "".join([lines[0][found.end() :], *lines[1:]]).strip()
        return [Field(key=found[1], line=before + 1, value=text, as_text=True)]


def _refuse_doubles(fields: tuple[Field, ...]) -> None:
    first: dict[str, Field] = {}
    faults = []
    for field in fields:
        other = first.setdefault(plain_key(field.key), field)
        if other is not field:
            message = f"{quoted(field.key)} is given twice; the other one stands on line {other.line}"
            faults.append(Fault(field.line, 1, message))
    if faults:
        raise Unreadable(*faults)


def _without_blank_lines(body: str) -> str:
    return re.sub(r"\A(?:[ \t]*(?:\r\n|\r|\n))+", "", body)
