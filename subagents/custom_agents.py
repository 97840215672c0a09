"""What a custom agent is: a lead as an administrator made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from subagents.definitions import INHERIT, Source, row_key
from subagents.scope import ALL_ENABLED, NOBODY, Scope, ScopeKind, only

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomAgent:
    """One lead that people can choose besides the default one.

    None and () in a list are two different things. Source of the fields and their rules: product.md §4.
    """

    name: str
    system_prompt: str  # never a template
    display_name: str = ""
    description: str = ""
    model: str = INHERIT  # the first available configured model
    tools: tuple[str, ...] | None = None  # None: every tool; (): none
    skills: tuple[str, ...] | None = None  # None: every enabled skill; (): none
    subagent_enabled: bool = True
    scope: Scope = ALL_ENABLED
    enabled: bool = True
    version: str | None = None  # opaque; another text after each change
    updated_at: datetime | None = None

    @property
    def title(self) -> str:
        return self.display_name or self.name

    @property
    def key(self) -> str:
        return row_key(Source.MANAGED, self.name)

    @property
    def allowed_subagents(self) -> tuple[str, ...] | None:
        """The scope as documents say it: None all enabled, () none, else only these."""
        return None if self.scope.kind is ScopeKind.ALL else self.scope.names


def scope_of(allowed_subagents: Iterable[str] | None) -> Scope:
    """Turn a document's `allowed_subagents` into a scope: null all enabled, [] none, else only these."""
    if allowed_subagents is None:
        return ALL_ENABLED
    names = tuple(allowed_subagents)
    return only(*names) if names else NOBODY
