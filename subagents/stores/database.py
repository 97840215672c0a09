"""Managed definitions as rows of the application's database, shared by every process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Sum
from django.utils import timezone

from subagents.catalogue import Invalid
from subagents.definitions import Definition, Source
from subagents.errors import InvalidDefinition, NameTaken, StaleVersion, SubagentNotFound
from subagents.models import ManagedSubagent
from subagents.stores.base import Contents
from subagents.validation import FIELDS, to_plain, validate_definition

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


class DatabaseStore:
    """The Store over ManagedSubagent."""

    def signature(self) -> str:
        # Neither part alone is enough: clocks of several machines differ, and a deleted row takes its version along.
        parts = ManagedSubagent.objects.aggregate(
            rows=Count("pk"), newest=Max("pk"), versions=Sum("version"), updated=Max("updated_at")
        )
        return "/".join(str(part) for part in parts.values())

    def all(self) -> Contents:
        definitions, invalid = [], []
        for row in ManagedSubagent.objects.order_by("name"):
            try:
                definitions.append(_definition(row))
            except InvalidDefinition as refused:
                problems = tuple(f"{path}: {sentence}" for path, sentence in refused.faults)
                invalid.append(Invalid(source=Source.MANAGED, name=row.name, problems=problems))
        return Contents(definitions=tuple(definitions), invalid=tuple(invalid))

    def get(self, name: str) -> Definition:
        row = ManagedSubagent.objects.filter(name=name).first()
        if row is None:
            raise SubagentNotFound(name)
        return _definition(row)

    def put(self, definition: Definition, *, expected_version: int | None, user: AbstractBaseUser | None) -> Definition:
        now = timezone.now()
        changes = {**to_plain(definition), "updated_at": now, "updated_by_id": user.pk if user else None}
        if expected_version is None:
            try:
                with transaction.atomic():
                    ManagedSubagent.objects.create(created_at=now, **changes)
            except IntegrityError:
                raise NameTaken(definition.name, Source.MANAGED) from None
        else:
            stored = ManagedSubagent.objects.filter(name=definition.name, version=expected_version)
            if not stored.update(version=F("version") + 1, **changes):
                raise _stale(definition.name, expected_version)
        return self.get(definition.name)

    def delete(self, name: str, *, expected_version: int) -> None:
        deleted, _rows = ManagedSubagent.objects.filter(name=name, version=expected_version).delete()
        if deleted:
            return
        stale = _stale(name, expected_version)
        raise SubagentNotFound(name) if stale.current is None else stale


def _stale(name: str, expected_version: int) -> StaleVersion:
    current = ManagedSubagent.objects.filter(name=name).values_list("version", flat=True).first()
    return StaleVersion(name, expected=expected_version, current=current)


def _definition(row: ManagedSubagent) -> Definition:
    definition = validate_definition({field: getattr(row, field) for field in FIELDS})
    if definition.name != row.name:
        raise InvalidDefinition([("name", f"expected {definition.name}, the normalised spelling")])
    return replace(definition, version=row.version, updated_at=row.updated_at)
