"""Paths into a thread that a search may ask for: `values.messages[-1].content`, `metadata.topic`. No database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from runs.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

Path = tuple[str | int, ...]
MAX_PATHS: Final = 10
_PATH_LENGTH, _ALIAS_LENGTH = 200, 100
_STEP = re.compile(r"(?:^|\.)([^.\[\]]+)|\[(-?\d{1,9})\]")


def some_paths(body: Mapping[str, Any]) -> dict[str, Path]:
    """The body's `extract`: paths by the names under which their values are wanted."""
    wanted = body.get("extract")
    if wanted is None:
        return {}
    if not isinstance(wanted, dict) or len(wanted) > MAX_PATHS:
        raise BadInput("extract", f"expected an object of at most {MAX_PATHS} paths")
    return {alias: _path(alias, text) for alias, text in wanted.items()}


def _path(alias: str, text: Any) -> Path:
    field = f"extract.{alias[:_ALIAS_LENGTH]}"
    if not isinstance(text, str) or len(text) > _PATH_LENGTH or len(alias) > _ALIAS_LENGTH:
        raise BadInput(field, "expected a path like values.messages[-1]")
    steps: list[str | int] = []
    end = 0
    for step in _STEP.finditer(text):
        if step.start() != end:
            break
        steps.append(step[1] if step[1] is not None else int(step[2]))
        end = step.end()
    if end != len(text) or not steps or steps[0] not in {"values", "metadata", "config", "error", "interrupts"}:
        raise BadInput(field, "expected a path like values.messages[-1] or metadata.topic")
    return tuple(steps)


def at_path(value: Any, path: Path) -> Any:
    """What stands there; None where nothing does."""
    for step in path:
        if isinstance(step, int):
            there = isinstance(value, list) and -len(value) <= step < len(value)
        else:
            there = isinstance(value, dict) and step in value
        if not there:
            return None
        value = value[step]
    return value
