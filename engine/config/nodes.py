"""Bytes to a tree of YAML nodes that remember where they stand.

Built from the parser's events, not by PyYAML's composer: depth, size and aliases are bounded
while reading, no tag ever constructs anything, and the text as written stays available.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from engine.config.errors import shorten
from engine.reasons import Reason
from engine.reasons import gettext_noop as _

MAX_SIZE_BYTES = 1024 * 1024
MAX_NODES = 100_000
MAX_DEPTH = 40
_MOST_TAB_LINES = 100

# libyaml is several times faster; the pure parser gives the same events where it is missing.
PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_STR_TAG = "tag:yaml.org,2002:str"
_TAG_PREFIX = "tag:yaml.org,2002:"
_NOT_YAML = _("not readable as YAML: %(problem)s")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_TAB_INDENT = re.compile(r"[ ]*\t")
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why bytes are not a readable document, at a line and column counted from 1."""

    line: int
    column: int
    message: str


class Unreadable(Exception):
    """The bytes do not form one YAML document within the limits."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = faults


@dataclass(slots=True, kw_only=True)
class Node:
    """A position and the tag a node carries although none is allowed; `size` counts it and all below it."""

    line: int
    column: int
    forbidden_tag: str | None = None
    size: int = 1


@dataclass(slots=True, kw_only=True)
class ScalarNode(Node):
    text: str
    plain: bool  # unquoted, so that it may mean something other than text


@dataclass(slots=True, kw_only=True)
class SequenceNode(Node):
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MappingNode(Node):
    pairs: list[tuple[Node, Node]] = field(default_factory=list)


def decode(raw: bytes) -> str:
    """Return the text of a UTF-8 file, a byte order mark removed. Raises Unreadable with offset and hint."""
    if len(raw) > MAX_SIZE_BYTES:
        sentence = _("the file has %(size)s bytes; at most %(most)s are read")
        raise Unreadable(Fault(1, 1, Reason(sentence, size=len(raw), most=MAX_SIZE_BYTES)))
    if raw.startswith(_UTF16_BOMS):
        sentence = _("not UTF-8: byte offset 0 starts a UTF-16 file; save the file as UTF-8")
        raise Unreadable(Fault(1, 1, Reason(sentence)))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(_encoding_fault(raw, error.start)) from None
    text = text.removeprefix("\ufeff")
    unprintable = list(_UNPRINTABLE.finditer(text))
    if unprintable:
        raise Unreadable(_unprintable_fault(text, unprintable))
    return text


def parse(text: str) -> Node | None:
    """Return the root node of the only document, None for an empty one. Raises Unreadable."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=PARSER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(*_syntax_faults(text, error)) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The pure parser lets `"\UFFFFFFFF"` escape as a bare OverflowError.
        raise Unreadable(Fault(1, 1, Reason(_NOT_YAML, problem=type(error).__name__))) from None
    return builder.root


class _Builder:
    """Takes the parser's events one by one; bounds depth, nodes and what aliases expand to."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[tuple[Node, str | None]] = []
        self._waiting_keys: list[Node | None] = []
        self._anchors: dict[str, Node] = {}
        self._documents = 0
        self._nodes = 0

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            line, column = _place(event)
            node = ScalarNode(line=line, column=column, text=event.value, plain=_is_plain(event))
            node.forbidden_tag = _forbidden(event.tag, event.tag == _STR_TAG)
            self._remember(event.anchor, node)
            self._attach(node, event)
        elif isinstance(event, yaml.AliasEvent):
            self._attach(self._aliased(event), event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                _refuse(event, Reason(_("a second document starts here; a configuration file holds one")))

    def _start(self, event: Any) -> None:
        if len(self._open) >= MAX_DEPTH:
            _refuse(event, Reason(_("nested deeper than %(most)s levels"), most=MAX_DEPTH))
        kind = MappingNode if isinstance(event, yaml.MappingStartEvent) else SequenceNode
        line, column = _place(event)
        node = kind(line=line, column=column, forbidden_tag=_forbidden(event.tag, False))
        self._open.append((node, event.anchor))
        self._waiting_keys.append(None)

    def _end(self, event: Any) -> None:
        node, anchor = self._open.pop()
        self._waiting_keys.pop()
        self._remember(anchor, node)
        self._attach(node, event)

    def _aliased(self, event: Any) -> Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            sentence = _("the alias *%(name)s names no anchor that ends before it")
            _refuse(event, Reason(sentence, name=shorten(event.anchor)))
        return node

    def _remember(self, anchor: str | None, node: Node) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _attach(self, node: Node, event: Any) -> None:
        self._nodes += node.size if isinstance(event, yaml.AliasEvent) else 1
        if not self._open:
            self.root = node
            return
        parent = self._open[-1][0]
        parent.size += node.size
        if self._nodes > MAX_NODES:
            _refuse(event, Reason(_("more than %(most)s values once its aliases are expanded"), most=MAX_NODES))
        if isinstance(parent, SequenceNode):
            parent.items.append(node)
        elif isinstance(parent, MappingNode):
            key = self._waiting_keys[-1]
            self._waiting_keys[-1] = node if key is None else None
            if key is not None:
                parent.pairs.append((key, node))


def _refuse(event: Any, message: Reason) -> NoReturn:
    raise Unreadable(Fault(*_place(event), message))


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _is_plain(event: Any) -> bool:
    return not event.style and event.tag is None


def _forbidden(tag: str | None, is_text: bool) -> str | None:
    if tag is None or tag == "!" or is_text:
        return None
    return shorten("!!" + tag.removeprefix(_TAG_PREFIX) if tag.startswith(_TAG_PREFIX) else tag)


def _encoding_fault(raw: bytes, offset: int) -> Fault:
    before = raw[:offset].decode("utf-8")
    line, column = _position(before.removeprefix("\ufeff"))
    template = _(
        "not UTF-8: byte 0x%(byte)s at byte offset %(offset)s (the bytes can be read as GBK); save the file as UTF-8"
    )
    try:
        raw.decode("gbk")
    except UnicodeDecodeError:
        template = _("not UTF-8: byte 0x%(byte)s at byte offset %(offset)s; save the file as UTF-8")
    return Fault(line, column, Reason(template, byte=f"{raw[offset]:02X}", offset=offset))


def _unprintable_fault(text: str, found: list[re.Match[str]]) -> Fault:
    line, column = _position(text[: found[0].start()])
    character = found[0].group()
    name = Reason(_("the control character U+%(code)s"), code=f"{ord(character):04X}")
    if character == "\0":
        name = Reason(_("a NUL byte"))
    if len(found) == 1:
        return Fault(line, column, Reason(_("%(name)s is not allowed; is this a text file?"), name=name))
    sentence = _("%(name)s is not allowed, and %(more)s more such characters after it; is this a text file?")
    return Fault(line, column, Reason(sentence, name=name, more=len(found) - 1))


def _position(before: str) -> tuple[int, int]:
    lines = _LINE_BREAK.split(before)
    return len(lines), len(lines[-1]) + 1


def _syntax_faults(text: str, error: yaml.MarkedYAMLError) -> list[Fault]:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = _LINE_BREAK.split(text)
    if line <= len(lines) and _TAB_INDENT.match(lines[line - 1]):
        return _tab_faults(lines)
    problem = error.problem or error.context or "syntax error"  # the parser's own words
    if error.context and error.problem:
        problem += f" {error.context}"
        if error.context_mark and error.context_mark.line + 1 != line:
            problem += f" that starts on line {error.context_mark.line + 1}"
    template = _('not readable as YAML: %(problem)s; put a value that holds ": " in quotes')
    return [Fault(line, column, Reason(template if "mapping values" in problem else _NOT_YAML, problem=problem))]


def _tab_faults(lines: list[str]) -> list[Fault]:
    indented = [(number, line.index("\t") + 1) for number, line in enumerate(lines, 1) if _TAB_INDENT.match(line)]
    message = Reason(_("tabs are not allowed as indentation; use spaces"))
    faults = [Fault(line, column, message) for line, column in indented[:_MOST_TAB_LINES]]
    if len(indented) > _MOST_TAB_LINES:
        line, column = indented[_MOST_TAB_LINES]
        sentence = _("tabs are not allowed as indentation; use spaces (and on %(more)s more lines)")
        faults.append(Fault(line, column, Reason(sentence, more=len(indented) - len(faults) - 1)))
    return faults
