"""Definitions as rows of the application's database, shared by every process."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic

from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone

from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from engine.text import clean
from subagents.catalogue import Invalid
from subagents.definitions import Source
from subagents.errors import InvalidDefinition, NameTaken, NotFound, StaleVersion
from subagents.kinds import AGENT, REMOTE, SUBAGENT, Item, Kind
from subagents.models import CustomAgent, ManagedSubagent, RemoteAgent, Revision
from subagents.stores.base import Contents, Found

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from subagents.models import Stored

MODELS: Final[dict[str, type[Stored]]] = {
    SUBAGENT.name: ManagedSubagent,
    AGENT.name: CustomAgent,
    REMOTE.name: RemoteAgent,
}


class DatabaseStore(Generic[Item]):
    """The Store over the table of a kind. A version is the row's counter."""

    def __init__(self, kind: Kind[Item]) -> None:
        self._kind = kind

    def signature(self, *, fresh: bool = False) -> str:
        return signatures(self._kind)

    def all(self) -> Contents[Item]:
        found = [self._found(row) for row in self._rows().order_by("name")]
        return Contents(
            items=tuple(each.item for each in found if each.item is not None),
            invalid=tuple(each.invalid for each in found if each.invalid is not None),
        )

    def find(self, name: str) -> Found[Item] | None:
        row = self._named(name).first()
        return None if row is None else self._found(row)

    def get(self, name: str) -> Item:
        row = self._named(name).first()
        if row is None:
            raise NotFound(name, noun=self._kind.noun)
        return self._item(row)

    def put(self, item: Item, *, expected_version: str | None) -> Item:
        now = timezone.now()
        changes = {**self._kind.to_plain(item), "updated_at": now}
        if expected_version is None:
            try:
                with transaction.atomic():
                    self._rows().create(created_at=now, version=self._first_version(item.name), **changes)
            except IntegrityError:
                raise NameTaken(item.name, Source.MANAGED, noun=self._kind.noun) from None
        elif not self._at(item.name, expected_version).update(version=F("version") + 1, **changes):
            raise self._stale(item.name, expected_version)
        return self.get(item.name)

    def delete(self, name: str, *, expected_version: str) -> None:
        deleted, _rows = self._at(name, expected_version).delete()
        if deleted:
            return
        stale = self._stale(name, expected_version)
        raise NotFound(name, noun=self._kind.noun) if stale.current is None else stale

    def _rows(self) -> QuerySet[Any]:
        return MODELS[self._kind.name]._default_manager.all()

    def _named(self, name: str) -> QuerySet[Any]:
        # A name from an address may hold what a database refuses to be asked for.
        return self._rows().filter(name=name) if clean(name) == name else self._rows().none()

    def _at(self, name: str, version: str) -> QuerySet[Any]:
        rows = self._named(name)
        return rows.filter(version=int(version)) if _is_counter(version) else rows.none()

    def _first_version(self, name: str) -> int:
        """A name that is used again goes on counting, so that a form opened on the old one stays stale."""
        newest = Revision.objects.filter(kind=self._kind.name, name=name).order_by("-number").first()
        if newest is None:
            return 1
        return 1 + max(newest.number, int(newest.version) if _is_counter(newest.version) else 0)

    def _stale(self, name: str, expected_version: str) -> StaleVersion:
        current = self._named(name).values_list("version", flat=True).first()
        return StaleVersion(name, expected=expected_version, current=None if current is None else str(current))

    def _found(self, row: Stored) -> Found[Item]:
        version, document = str(row.version), self._document(row)
        try:
            return Found(version=version, document=document, item=self._item(row))
        except InvalidDefinition as refused:
            broken = Invalid(source=Source.MANAGED, name=row.name, problems=refused.reasons, version=version)
            return Found(version=version, document=document, invalid=broken)

    def _document(self, row: Stored) -> dict[str, object]:
        return {field: getattr(row, field) for field in self._kind.fields}

    def _item(self, row: Stored) -> Item:
        item = self._kind.validate(self._document(row))
        if item.name != row.name:
            sentence = _("expected %(name)s, the normalised spelling")
            raise InvalidDefinition([("name", Reason(sentence, name=item.name))])
        stored: Any = replace(item, version=str(row.version), updated_at=row.updated_at)  # type: ignore[type-var]
        return stored  # type: ignore[no-any-return]


def signatures(*kinds: Kind[Any]) -> str:
    """Return a text that changes whenever a row of these kinds does, with one query for all of them."""
    with connection.cursor() as cursor:
        cursor.execute(_signatures(tuple(kind.name for kind in kinds)))
        return " ".join("/".join(map(str, row)) for row in sorted(cursor.fetchall()))


@cache
def _signatures(names: tuple[str, ...]) -> str:
    # Neither part alone is enough: clocks of several machines differ, and a deleted row takes its version along.
    # Written out: every delegation asks, and building the query took longer than answering it.
    parts = "COUNT(*), MAX(id), SUM(version), MAX(updated_at)"
    return " UNION ALL ".join(f"SELECT '{name}', {parts} FROM {MODELS[name]._meta.db_table}" for name in names)


def _is_counter(version: str) -> bool:
    return version.isascii() and version.isdigit() and len(version) <= 9
