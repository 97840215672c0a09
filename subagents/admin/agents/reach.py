"""Whom an agent can delegate to now, and what stands in the way of those it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from subagents import wording
from subagents.admin.columns import source_badge, state_badge
from subagents.scope import Scope, ScopeKind

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from subagents.catalogue import Catalogue, Entry


@dataclass(frozen=True, slots=True)
class Called:
    """A subagent as the list names it."""

    name: str
    title: str
    key: str  # the address of its page
    badge: SafeString


@dataclass(frozen=True, slots=True)
class Idle:
    """A selected name that cannot be called, and why. `key` is empty for one that nothing bears."""

    name: str
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Reach:
    """`called` in the order of the catalogue; `nobody` says why it is empty."""

    called: tuple[Called, ...]
    idle: tuple[Idle, ...]
    nobody: str = ""
    is_warning: bool = False  # nobody, although some were selected


def reach_of(scope: Scope, catalogue: Catalogue, *, delegates: bool) -> Reach:
    """Resolve a scope under the catalogue of this moment. `delegates`: the agent's own switch."""
    names = scope.resolve(catalogue)
    idle = tuple(_idle(name, catalogue) for name in scope.names if name not in names)
    if not delegates:
        return Reach((), idle, nobody=_("It cannot delegate: delegation is switched off for this agent."))
    called = tuple(_called(catalogue.runnable[name]) for name in names)
    return Reach(called, idle, nobody="" if called else _nobody(scope), is_warning=scope.kind is ScopeKind.ONLY)


@dataclass(frozen=True, slots=True)
class Choosable:
    """One subagent to tick: where it comes from, and its state where it does not run."""

    name: str
    title: str
    source: SafeString
    state: SafeString | str
    checked: bool


def choosable(catalogue: Catalogue, chosen: Any) -> tuple[Choosable, ...]:
    """Every name that something bears, also of what does not run now: it may run again."""
    holders = [entry for entry in catalogue.entries if entry.shadowed_by is None]
    return tuple(
        Choosable(
            name=entry.name,
            title=entry.definition.display_name,
            source=source_badge(entry.source),
            state="" if entry.runnable else state_badge(entry.state),
            checked=entry.name in chosen,
        )
        for entry in holders
    )


def _called(entry: Entry) -> Called:
    return Called(entry.name, entry.definition.title, entry.key, source_badge(entry.source))


def _idle(name: str, catalogue: Catalogue) -> Idle:
    holder = catalogue.holder(name)
    if holder is None:
        return Idle(name, "", _("missing: no subagent bears this name. It is kept and works again once one does."))
    return Idle(name, holder.key, wording.say(holder.reason) if holder.reason else "")


def _nobody(scope: Scope) -> str:
    if scope.kind is ScopeKind.NONE:
        return _("It cannot delegate to anybody. No request can change that.")
    if scope.kind is ScopeKind.ONLY:
        return _("None of the selected subagents can run at the moment: it cannot delegate to anybody.")
    return _("There is no subagent that can run at the moment.")
