"""Which subagents a lead may see: all enabled, none, or only selected ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from subagents.catalogue import Catalogue


class ScopeKind(StrEnum):
    """How a scope chooses. `only` with no name chooses nobody, like `none`."""

    ALL = "all"
    NONE = "none"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class Scope:
    """The choice as an administrator made it. Selected names stay when nothing bears them any more."""

    kind: ScopeKind
    names: tuple[str, ...] = ()

    def resolve(self, catalogue: Catalogue) -> tuple[str, ...]:
        """Return the names that this scope lets a lead call now, in the catalogue's order."""
        if self.kind is ScopeKind.NONE:
            return ()
        if self.kind is ScopeKind.ALL:
            return tuple(catalogue.runnable)
        selected = frozenset(self.names)
        return tuple(name for name in catalogue.runnable if name in selected)

    def missing(self, catalogue: Catalogue) -> tuple[str, ...]:
        """Return the selected names that no entry of the catalogue bears."""
        present = {entry.name for entry in catalogue.entries}
        return tuple(name for name in self.names if name not in present)

    def to_json(self) -> dict[str, object]:
        """`{"scope": "all"}`, `{"scope": "none"}` or `{"scope": "only", "names": […]}`."""
        if self.kind is ScopeKind.ONLY:
            return {"scope": self.kind.value, "names": list(self.names)}
        return {"scope": self.kind.value}


ALL_ENABLED: Final = Scope(ScopeKind.ALL)
NOBODY: Final = Scope(ScopeKind.NONE)


def only(*names: str) -> Scope:
    """Choose these names, each once."""
    return Scope(ScopeKind.ONLY, tuple(dict.fromkeys(names)))


def scope_from_json(value: object) -> Scope:
    """Read what `Scope.to_json` wrote. Raises ValueError for anything else: a guess could widen the scope."""
    if not isinstance(value, dict):
        raise ValueError("a scope is an object")
    kind, names = value.get("scope"), value.get("names")
    if kind in (ScopeKind.ALL, ScopeKind.NONE) and set(value) == {"scope"}:
        return Scope(ScopeKind(kind))
    if kind == ScopeKind.ONLY and set(value) == {"scope", "names"} and isinstance(names, list):
        chosen = [name for name in names if isinstance(name, str)]
        if len(chosen) == len(names):
            return only(*chosen)
    raise ValueError('a scope is {"scope": "all"}, {"scope": "none"} or {"scope": "only", "names": [text, …]}')
