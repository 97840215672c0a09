"""What edges call to change stored definitions of either kind: page, API and command alike.

Each call is one transaction under one lock: it checks, writes, adds to the history and makes the registry look again.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction

from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from subagents import history, registry
from subagents.actor import Actor
from subagents.copying import copied
from subagents.errors import InvalidDefinition, NameTaken, NotFound, ReadOnly, StaleVersion, SubagentsError
from subagents.history import Action
from subagents.kinds import AGENT, SUBAGENT
from subagents.scope import ScopeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from subagents.agent_entries import AgentEntry
    from subagents.catalogue import Entry
    from subagents.custom_agents import CustomAgent
    from subagents.definitions import Source
    from subagents.kinds import Item, Kind
    from subagents.models import Revision
    from subagents.remote_entries import RemoteEntry
    from subagents.stores.base import Found, Store

__all__ = [
    "Actor",
    "create",
    "delete",
    "document_of",
    "named_by",
    "replace",
    "revisions",
    "set_enabled",
    "update",
]

CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"


def create(kind: Kind[Item], document: Mapping[str, object], *, actor: Actor) -> Item:
    """Store a new definition and return it.

    Raises InvalidDefinition with every fault, and NameTaken when any source holds the name, readable or not.
    Source: product.md §2.3, §2.4.
    """
    item = kind.validate(document)
    with _writing(kind) as store:
        holder = _holder(kind, item.name)
        if holder is not None:
            raise NameTaken(item.name, holder)
        stored = store.put(item, expected_version=None)
        _note(kind, stored, Action.CREATED, fields=(), actor=actor)
    return stored


def update(kind: Kind[Item], name: str, changes: Mapping[str, object], *, expected_version: str, actor: Actor) -> Item:
    """Change the fields that `changes` holds, no others, and return the definition as stored.

    A `name` in it must be the same. Null sets a field back to what leaving it out means. What changes nothing is no
    change: the version stays and the history gets no entry. A definition may be saved while a stronger source
    shadows it. Raises StaleVersion, NotFound, ReadOnly and InvalidDefinition, the last also for a broken row, which
    only `replace` can repair.
    """
    with _writing(kind) as store:
        found = _expected(kind, store, name, expected_version)
        before = _readable(found)
        return _save(kind, store, name, {**kind.to_plain(before), **changes}, found, actor)


def replace(
    kind: Kind[Item], name: str, document: Mapping[str, object], *, expected_version: str, actor: Actor
) -> Item:
    """Replace the whole definition, also one that could not be read, and return it as stored.

    Fields that are left out get their default. Raises like `update`.
    """
    with _writing(kind) as store:
        found = _expected(kind, store, name, expected_version)
        return _save(kind, store, name, document, found, actor)


def set_enabled(
    kind: Kind[Any], names: Iterable[str], enabled: bool, *, actor: Actor
) -> dict[str, Literal["changed", "unchanged"] | SubagentsError]:
    """Switch several on or off, one history entry each; return by name what happened, the refusals too."""
    outcome: dict[str, Literal["changed", "unchanged"] | SubagentsError] = {}
    with _writing(kind) as store:
        for name in dict.fromkeys(names):
            try:
                with transaction.atomic():
                    outcome[name] = _switch(kind, store, name, enabled, actor)
            except SubagentsError as refused:
                outcome[name] = refused
    return outcome


def delete(kind: Kind[Any], name: str, *, expected_version: str, actor: Actor) -> None:
    """Delete a definition, readable or not; its history stays. Raises NotFound, ReadOnly and StaleVersion."""
    with _writing(kind) as store:
        found = _expected(kind, store, name, expected_version)
        history.catch_up(kind, name, found)
        document = kind.shown(found.document)
        history.record(kind, name, Action.DELETED, version=expected_version, document=document, actor=actor)
        history.log(kind, name, Action.DELETED, fields=(), actor=actor)
        store.delete(name, expected_version=expected_version)


def revisions(kind: Kind[Any], name: str) -> list[Revision]:
    """Return the history of a definition, newest first."""
    return list(history.of(kind, name).select_related("author"))


def document_of(entry: Entry | AgentEntry | RemoteEntry) -> dict[str, object]:
    """Return what an entry of any source runs with as a document of a new definition, under a free name.

    What it gets from a setting that holds for managed definitions as well stays unsaid, so that the copy goes on
    following that setting.
    """
    return copied(entry, registry.current())


def named_by(name: str) -> tuple[CustomAgent, ...]:
    """Return the custom agents whose `allowed_subagents` names this subagent."""
    agents = (entry.agent for entry in registry.current().agents if not entry.problems)
    return tuple(agent for agent in agents if agent.scope.kind is ScopeKind.ONLY and name in agent.scope.names)


@contextmanager
def _writing(kind: Kind[Item]) -> Iterator[Store[Item]]:
    """One transaction in which nobody else changes definitions; the store is that of the configuration in force."""
    try:
        with transaction.atomic():
            history.lock()
            yield registry.store(kind)
            # Once more when a surrounding transaction commits: until then other threads still read the old rows.
            transaction.on_commit(registry.forget)
    finally:
        registry.forget()


def _expected(kind: Kind[Item], store: Store[Item], name: str, expected_version: str) -> Found[Item]:
    """Return what is stored if it is at the expected version. Raises StaleVersion, NotFound and ReadOnly."""
    found = _stored(kind, store, name)
    if found.version == expected_version:
        return found
    changes = history.since(kind, name, expected_version, found.document)
    raise StaleVersion(name, expected=expected_version, current=found.version, changes=changes)


def _stored(kind: Kind[Item], store: Store[Item], name: str) -> Found[Item]:
    found = store.find(name)
    if found is not None:
        return found
    holder = _holder(kind, name)
    if holder is not None:
        raise ReadOnly(name, holder)
    raise NotFound(name, noun=kind.noun)


def _holder(kind: Kind[Any], name: str) -> Source | None:
    """The stronger source that holds the name. Custom agents share theirs with nobody."""
    if kind is AGENT:
        return None
    return registry.reserved_for(name) if kind is SUBAGENT else registry.holder_of(name)


def _readable(found: Found[Item]) -> Item:
    if found.item is None:
        problems = found.invalid.problems if found.invalid is not None else ()
        raise InvalidDefinition([("", problem) for problem in problems])
    return found.item


def _save(
    kind: Kind[Item],
    store: Store[Item],
    name: str,
    document: Mapping[str, object],
    found: Found[Item],
    actor: Actor,
) -> Item:
    item = kind.validate(kind.completed(document, found.item))
    if item.name != name:
        raise InvalidDefinition([("name", Reason(_("the name of a definition cannot be changed")))])
    before = found.item
    if before is not None and kind.to_plain(before) == kind.to_plain(item):
        return before
    history.catch_up(kind, name, found)
    stored = store.put(item, expected_version=found.version)
    fields = tuple(
        history.changed_fields(found.document if before is None else kind.to_plain(before), kind.to_plain(item))
    )
    _note(kind, stored, _action(fields, item, repaired=before is None), fields=fields, actor=actor)
    return stored


def _switch(kind: Kind[Any], store: Store[Any], name: str, enabled: bool, actor: Actor) -> Any:
    found = _stored(kind, store, name)
    item = _readable(found)
    if item.enabled is enabled:
        return UNCHANGED
    _save(kind, store, name, {**kind.to_plain(item), "enabled": enabled}, found, actor)
    return CHANGED


def _action(fields: tuple[str, ...], item: Item, *, repaired: bool) -> Action:
    if repaired:
        return Action.REPAIRED
    if fields == ("enabled",):
        return Action.ENABLED if item.enabled else Action.DISABLED
    return Action.CHANGED


def _note(kind: Kind[Item], stored: Item, action: Action, *, fields: tuple[str, ...], actor: Actor) -> None:
    document = kind.to_plain(stored)
    history.record(kind, stored.name, action, version=stored.version or "", document=document, actor=actor)
    history.log(kind, stored.name, action, fields=fields, actor=actor)
