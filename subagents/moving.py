"""From one backend to the other: both kinds of definition, each compared field for field before the old one goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import transaction

from subagents import history, registry
from subagents.errors import NotFound, StaleVersion, StorageFailed
from subagents.history import Action
from subagents.kinds import KINDS

if TYPE_CHECKING:
    from subagents.actor import Actor
    from subagents.kinds import Kind
    from subagents.registry import Backend
    from subagents.stores.base import Store


class Result(StrEnum):
    """What became of one definition."""

    MOVED = "moved"  # with `dry_run`: would be
    COPIED = "copied"  # it is in both now, as was asked for
    CONFLICT = "conflict"  # the target holds another one under the name; both were left as they are
    BROKEN = "broken"  # it cannot be read, so it was left where it is
    FAILED = "failed"  # the disk or another writer came in between; it is still where it was


WHOLE = frozenset({Result.MOVED, Result.COPIED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    kind: str
    name: str
    result: Result
    why: str = ""


def move(target: Backend, *, actor: Actor, keep: bool = False, dry_run: bool = False) -> tuple[Moved, ...]:
    """Move every definition to a backend, whichever is in force, and say what became of each.

    First all are copied and read back, in one transaction; then each old one goes, unless `keep`, provided that it is
    still what was copied. What the target holds already in the same words counts as copied, so that a move which was
    interrupted is finished by doing it again. Histories stay, and note the move. Source: product.md §2.3.
    """
    outcome: list[Moved] = []
    for kind in KINDS:
        source = registry.open_store(kind, "db" if target == "file" else "file")
        destination = registry.open_store(kind, target)
        source.signature(fresh=True)  # so that nothing is taken for unchanged
        contents = source.all()
        outcome += [
            Moved(kind=kind.name, name=row.name, result=Result.BROKEN, why="; ".join(row.problems))
            for row in contents.invalid
        ]
        with transaction.atomic():
            history.lock()
            copies = [(item, _copy(kind, item, destination, actor, dry_run=dry_run)) for item in contents.items]
        for item, copy in copies:
            finished = copy.result is not Result.COPIED or keep
            outcome.append(copy if finished else _let_go(kind, item, source, destination, dry_run=dry_run))
    registry.forget()
    return tuple(outcome)


def _copy(kind: Kind[Any], item: Any, destination: Store[Any], actor: Actor, *, dry_run: bool) -> Moved:
    """Have the definition at the destination, exactly as it is."""
    try:
        there = destination.find(item.name)
        if there is None and not dry_run:
            destination.put(item, expected_version=None)
            there = destination.find(item.name)
    except StorageFailed as fault:
        return Moved(kind=kind.name, name=item.name, result=Result.FAILED, why=str(fault))
    if there is not None and (there.item is None or kind.to_plain(there.item) != kind.to_plain(item)):
        fields = ", ".join(history.changed_fields(kind.to_plain(item), there.document))
        return Moved(kind=kind.name, name=item.name, result=Result.CONFLICT, why=f"these fields differ: {fields}")
    if there is not None and there.version is not None and not dry_run:
        newest = history.of(kind, item.name).first()
        if newest is None or newest.version != there.version:
            document = kind.to_plain(item)
            history.record(kind, item.name, Action.MOVED, version=there.version, document=document, actor=actor)
    return Moved(kind=kind.name, name=item.name, result=Result.COPIED)


def _let_go(kind: Kind[Any], item: Any, source: Store[Any], destination: Store[Any], *, dry_run: bool) -> Moved:
    """Take the old one away once the new one has been read back, committed, and found the same."""
    result, why = Result.MOVED, ""
    try:
        if not dry_run:
            there = destination.get(item.name)
            if kind.to_plain(there) != kind.to_plain(item):
                return Moved(kind=kind.name, name=item.name, result=Result.CONFLICT, why="it was changed meanwhile")
            with transaction.atomic():
                history.lock()
                source.delete(item.name, expected_version=item.version)
    except (StaleVersion, NotFound, StorageFailed) as fault:
        result, why = Result.FAILED, str(fault)
    return Moved(kind=kind.name, name=item.name, result=result, why=why)
