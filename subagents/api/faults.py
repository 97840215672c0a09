"""What this app raises, as the API's problems: same sentences as everywhere, in the caller's language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext

from access.api.problems import FieldProblem, Problem
from subagents.errors import (
    ConfigRefused,
    InvalidDefinition,
    NameTaken,
    NotFound,
    ReadOnly,
    StaleVersion,
    StorageFailed,
    SubagentsError,
)
from subagents.validation import REQUIRED
from subagents.wording import SOURCES, say

if TYPE_CHECKING:
    from collections.abc import Callable

# `engine.config.errors.format_path` writes `key`, `"a key"` and `[3]`.
_STEP: Final = re.compile(r'\[(\d+)\]|"((?:[^"\\]|\\.)*)"|([^.\[]+)')


def pointer(path: str) -> str:
    """A field's path, such as `token_budget.max_tokens` or `tools[2]`, as a JSON pointer."""
    steps = (next(filter(None, found.groups()), "") for found in _STEP.finditer(path))
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def problem_of(fault: Exception) -> Problem | None:
    """The problem that an exception of this app is; None for any other."""
    for kind, make in _PROBLEMS.items():
        if isinstance(fault, kind):
            return make(fault)
    return None


def _invalid(fault: InvalidDefinition) -> Problem:
    errors = [FieldProblem(pointer(path), say(sentence), _code_of(sentence)) for path, sentence in fault.faults]
    path, _sentence = fault.faults[0]
    said = errors[0].detail
    return Problem("invalid", f"{path}: {said}" if path else said, errors=errors)


def _code_of(sentence: str) -> str:
    return "required" if sentence == REQUIRED else "invalid"


def _name_taken(fault: NameTaken) -> Problem:
    said = gettext("The name %(name)s is taken (%(source)s).")
    detail = said % {"name": fault.name, "source": SOURCES[fault.source]}
    return Problem(
        "name_taken", detail, source=fault.source.value, errors=[FieldProblem("/name", detail, "name_taken")]
    )


def _read_only(fault: ReadOnly) -> Problem:
    said = gettext("%(name)s cannot be changed here (%(source)s). Duplicate it as a managed one under another name.")
    detail = said % {"name": fault.name, "source": SOURCES[fault.source]}
    return Problem("read_only", detail, source=fault.source.value)


def _stale(fault: StaleVersion) -> Problem:
    if fault.current is None:
        return Problem("stale_version", gettext("It no longer exists."), current=None, changes={})
    said = gettext(
        "You changed version %(expected)s; it is at version %(current)s now. Look at the changes, then decide."
    )
    changes = {field: {"then": then, "now": now} for field, (then, now) in fault.changes.items()}
    return Problem(
        "stale_version",
        said % {"expected": fault.expected[:64], "current": fault.current},
        headers={"ETag": f'"{fault.current}"'},
        current=fault.current,
        changes=changes,
    )


def _not_found(fault: NotFound) -> Problem:
    return Problem("not_found", gettext("There is none named %(name)s.") % {"name": fault.name})


def _storage_failed(_fault: StorageFailed) -> Problem:
    return Problem("unavailable", gettext("It could not be stored; what was there before is still there."))


def _config_refused(_fault: ConfigRefused) -> Problem:
    return Problem("unavailable", gettext("config.yaml is refused, and no earlier good one is known."))


_PROBLEMS: Final[dict[type[SubagentsError], Callable[..., Problem]]] = {
    InvalidDefinition: _invalid,
    NameTaken: _name_taken,
    ReadOnly: _read_only,
    StaleVersion: _stale,
    NotFound: _not_found,
    StorageFailed: _storage_failed,
    ConfigRefused: _config_refused,
}
