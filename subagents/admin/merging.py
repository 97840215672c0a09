"""Two people saved the same definition: what each of them changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subagents.errors import StaleVersion


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that somebody else changed in between. `is_kept`: this person typed another value, which stays."""

    field: str
    before: object
    stored: object
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Merged:
    """`document` is what the form shows next: what was typed, on top of what is stored now."""

    document: dict[str, Any]
    stored: dict[str, Any]
    differences: tuple[Difference, ...]


def merge(stale: StaleVersion, *, typed: Mapping[str, Any], stored: Mapping[str, Any]) -> Merged:
    """Lay what was typed over what is stored now, field by field.

    A field that was not touched takes the other person's value, so that saving again does not undo their work by
    accident. Where the version that was edited is no longer known, everything that was typed stays.
    """
    document, differences = dict(typed), []
    for field, (before, after) in stale.changes.items():
        if field not in stored:
            continue
        is_kept = not same(typed.get(field), before) and not same(typed.get(field), after)
        if not is_kept:
            document[field] = stored[field]
        differences.append(Difference(field, before, after, is_kept))
    return Merged(document, dict(stored), tuple(differences))


def same(one: object, other: object) -> bool:
    """Say whether two values of a field are equal; a browser's line ends are no difference."""
    if isinstance(one, str) and isinstance(other, str):
        return one.replace("\r\n", "\n").replace("\r", "\n") == other.replace("\r\n", "\n").replace("\r", "\n")
    return one == other
