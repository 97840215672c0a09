"""YAML nodes to plain values, with the place of every value and all that is wrong with the writing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from engine.config.deerflow import NO_EFFECT, UNUSED_KEYS
from engine.config.errors import Finding, KeyPath, Severity, quoted, shorten
from engine.config.nodes import MappingNode, Node, ScalarNode, SequenceNode
from engine.config.scalars import Surprise, resolve
from engine.reasons import Reason
from engine.reasons import gettext_noop as _

_SECRET_STEP = re.compile(
    r"(?i)(?:.*[_-])?(?:api_?key|key|secret|password|passwd|token|credentials?|authorization|headers)|env"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
UNSTORABLE = _("holds a NUL character or half of a surrogate pair, which cannot be stored")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value stands, where its key stands, and how to show the value in a message."""

    line: int
    column: int
    key_line: int
    key_column: int
    shown: str


@dataclass(slots=True)
class Tree:
    """`value` is made of dict, list, str, int, float, bool and None; every dict key is text."""

    value: object = None
    spots: dict[KeyPath, Spot] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def key_place(self, path: KeyPath) -> tuple[int, int]:
        """Line and column of the key at `path`, or of the nearest thing above it that is written down."""
        for length in range(len(path), 0, -1):
            spot = self.spots.get(path[:length])
            if spot is not None:
                return spot.key_line, spot.key_column
        return 1, 1

    def place(self, path: KeyPath) -> tuple[int, int]:
        """Line and column of the value at `path`, or of the nearest key above it."""
        spot = self.spots.get(path)
        return (spot.line, spot.column) if spot is not None else self.key_place(path)


def plant(root: Node | None) -> Tree:
    """Turn a document into a Tree; None, an empty document, becomes an empty mapping."""
    tree = Tree()
    tree.value = {} if root is None else _grow(tree, root, (), (root.line, root.column))
    if tree.value is None:
        tree.value = {}
    return tree


def _grow(tree: Tree, node: Node, path: KeyPath, key_place: tuple[int, int]) -> object:
    tree.spots[path] = Spot(node.line, node.column, *key_place, _shown(node, path))
    if node.forbidden_tag is not None:
        message = Reason(_("the tag %(tag)s is not allowed; write the plain value"), tag=node.forbidden_tag)
        tree.findings.append(Finding(path, node.line, node.column, message, Severity.REFUSED))
    if isinstance(node, MappingNode):
        return _grow_mapping(tree, node, path)
    if isinstance(node, SequenceNode):
        return [_grow(tree, item, (*path, index), (item.line, item.column)) for index, item in enumerate(node.items)]
    return _scalar(tree, node, path) if isinstance(node, ScalarNode) else None


def _grow_mapping(tree: Tree, node: MappingNode, path: KeyPath) -> dict[str, object]:
    values: dict[str, object] = {}
    first_lines: dict[str, int] = {}
    for key_node, value_node in node.pairs:
        key = _key(tree, key_node, path)
        here = (*path, key)
        if key in first_lines:
            message = Reason(_("duplicate key; the same key stands on line %(line)s"), line=first_lines[key])
            tree.findings.append(Finding(here, key_node.line, key_node.column, message, Severity.REFUSED))
        first_lines.setdefault(key, key_node.line)
        if key in UNUSED_KEYS.get(path, ()):
            tree.findings.append(Finding(here, key_node.line, key_node.column, Reason(NO_EFFECT), Severity.WARNING))
            continue
        values[key] = _grow(tree, value_node, here, (key_node.line, key_node.column))
    return values


def _key(tree: Tree, node: Node, path: KeyPath) -> str:
    """Return a key as text; anything that is not text is reported and stands in under its own spelling."""
    if not isinstance(node, ScalarNode):
        not_text = Reason(_("a key must be text, not a list or a mapping"))
        tree.findings.append(Finding((*path, "?"), node.line, node.column, not_text))
        return "?"
    text = node.text
    message = _unstorable(text)
    if node.forbidden_tag is not None:
        message = Reason(_("the tag %(tag)s is not allowed on a key"), tag=node.forbidden_tag)
    elif node.plain and text == "<<":
        message = Reason(_("merge keys are not read; write the options out"))
    elif node.plain and not isinstance(resolve(text), str):
        text = text or "~"
        sentence = _("a key must be text, and %(text)s is read as something else; put it in quotes")
        message = Reason(sentence, text=shorten(text))
    if message:
        tree.findings.append(Finding((*path, text), node.line, node.column, message))
    return text


def _scalar(tree: Tree, node: ScalarNode, path: KeyPath) -> object:
    value = resolve(node.text) if node.plain else node.text
    if isinstance(value, Surprise):
        shown = Reason(_("this value")) if _is_secret(path) else shorten(value.text)
        sentence = _("%(value)s does not mean the same to every YAML reader: %(advice)s")
        message = Reason(sentence, value=shown, advice=value.advice)
        tree.findings.append(Finding(path, node.line, node.column, message))
        return value.text
    if isinstance(value, str):
        unstorable = _unstorable(value)
        if unstorable:
            tree.findings.append(Finding(path, node.line, node.column, unstorable))
    return value


def _unstorable(text: str) -> Reason | None:
    # Escapes in double quotes can write what no file may hold; neither survives a database or a socket.
    if "\0" in text or _SURROGATE.search(text):
        return Reason(UNSTORABLE)
    return None


def _is_number_or_flag(node: ScalarNode) -> bool:
    return node.plain and isinstance(resolve(node.text), bool | int | float)


def _is_secret(path: KeyPath) -> bool:
    return any(isinstance(step, str) and _SECRET_STEP.fullmatch(step) for step in path)


def _shown(node: Node, path: KeyPath) -> str:
    if isinstance(node, MappingNode):
        return Reason(_("a mapping"))
    if isinstance(node, SequenceNode):
        return Reason(_("a list"))
    if not isinstance(node, ScalarNode) or (node.plain and resolve(node.text) is None):
        return Reason(_("nothing"))
    if _is_secret(path):
        return Reason(_("a number or a boolean") if _is_number_or_flag(node) else _("text that is not shown"))
    if node.plain and not isinstance(resolve(node.text), str):
        return shorten(node.text)
    return quoted(node.text)
