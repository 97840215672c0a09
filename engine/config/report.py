"""What pydantic found, said with the path, the place and the spelling of the file."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, get_args

from engine.config.errors import Finding, KeyPath
from engine.config.fields import Expected, Section
from engine.reasons import Reason, reason_of
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import ValidationError

    from engine.config.tree import Tree

_LONGEST_GUESSED_KEY = 64
# Comparing spellings is slow; a file with more unknown keys than this has another kind of problem.
_MOST_SUGGESTIONS = 100

_EXPECTATIONS = {
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_attributes_type", "model_type"), _("expected a mapping, got %(got)s")
    ),
    **dict.fromkeys(("list_type", "tuple_type"), _("expected a list, got %(got)s")),
    "string_type": _("expected text, got %(got)s"),
}


class Reporter:
    """Adds findings to a tree, one per path at most: what the writing got wrong is said only once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known = {finding.path for finding in tree.findings}
        self._suggestions_left = _MOST_SUGGESTIONS

    def expected(self, path: KeyPath, expectation: Expected) -> None:
        """Report a value that is not what its place takes, with what was found there."""
        spot = self._tree.spots.get(path)
        shown = spot.shown if spot else Reason(_("nothing"))
        self._add(path, self._tree.place(path), expectation.got(shown))

    def schema_errors(self, error: ValidationError, section: type[Section], prefix: KeyPath) -> None:
        """Report each error of one validation of `section`, which stands at `prefix`."""
        for detail in error.errors(include_url=False, include_input=False):
            path = self._path((*prefix, *detail["loc"]))
            kind = detail["type"]
            context: dict[str, Any] = detail.get("ctx", {})
            cause = context.get("error")
            if kind == "extra_forbidden":
                key, owner = path[-1], _section_at(section, detail["loc"][:-1])
                close = self.close_to(str(key), owner) if owner else ""
                message = Reason(_('unknown option; did you mean "%(name)s"?'), name=close)
                self._add(path, self._tree.key_place(path), message if close else Reason(_("unknown option")))
            elif kind == "missing":
                self._add(path, self._tree.key_place(path), Reason(_("required, but not set")))
            elif kind == "value_error" and not isinstance(cause, Expected):
                self._add(path, self._tree.place(path), reason_of(context["error"]))
            elif kind in {"literal_error", "enum"}:
                self.expected(path, Expected(_("expected %(choices)s, got %(got)s"), choices=context["expected"]))
            elif isinstance(cause, Expected):
                self.expected(path, cause)
            elif kind in _EXPECTATIONS:
                self.expected(path, Expected(_EXPECTATIONS[kind]))
            else:
                self.expected(path, Expected(_("%(problem)s, got %(got)s"), problem=detail["msg"]))

    def _path(self, located: KeyPath) -> KeyPath:
        # pydantic marks an error about a key itself by one more step, which stands nowhere in the file.
        is_about_key = located[-1:] == ("[key]",) and located not in self._tree.spots
        return located[:-1] if is_about_key else located

    def close_to(self, key: str, section: type[Section]) -> str:
        """Return the section's option that is spelled like `key`; empty for none."""
        if self._suggestions_left <= 0 or len(key) > _LONGEST_GUESSED_KEY:
            return ""
        self._suggestions_left -= 1
        close = difflib.get_close_matches(key.lower(), section.model_fields, n=1, cutoff=0.75)
        return close[0] if close else ""

    def _add(self, path: KeyPath, place: tuple[int, int], message: str) -> None:
        if path not in self._known:
            self._tree.findings.append(Finding(path, *place, message))


def _section_at(root: type[Section], path: tuple[int | str, ...]) -> type[Section] | None:
    """Return the section whose options stand at `path` below `root`."""
    annotation: Any = root
    for step in path:
        section = _first_section(annotation)
        if section is not None and step in section.model_fields:
            annotation = section.model_fields[str(step)].annotation
        # Otherwise the step is a key or an index of a container, whose items the same annotation names.
    return _first_section(annotation)


def _first_section(annotation: Any) -> type[Section] | None:
    return next(_sections(annotation), None)


def _sections(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections(argument)
