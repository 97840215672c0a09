"""The history of stored definitions, of both backends, in the database."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.utils import timezone

from engine.text import clean_json, shorten
from subagents.definitions import Source, row_key
from subagents.models import Revision
from subagents.stores.database import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from subagents.actor import Actor
    from subagents.kinds import Kind
    from subagents.stores.base import Found

Action = Revision.Action

_FLAGS: Final = {Action.CREATED: ADDITION, Action.DELETED: DELETION}
_LOCK: Final = zlib.crc32(b"deerflow:definitions")


def lock() -> None:
    """Wait until no other transaction changes definitions; holds until the end of this one.

    Before the lock of any backend, so that two writers can never wait for each other. On SQLite the transaction
    itself, which begins with the write lock, is the lock.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def of(kind: Kind[Any], name: str) -> QuerySet[Revision]:
    """Return the revisions of a definition, newest first; deleted and created again, it goes on with its history."""
    return Revision.objects.filter(kind=kind.name, name=name).order_by("-number")


def record(
    kind: Kind[Any], name: str, action: Action, *, version: str, document: Mapping[str, object], actor: Actor | None
) -> Revision:
    """Add a revision. `actor` None: nobody knows who did it. Call it while holding the lock."""
    newest = of(kind, name).first()
    user = actor.user if actor is not None else None
    return Revision.objects.create(
        kind=kind.name,
        name=name,
        number=1 if newest is None else newest.number + 1,
        version=version,
        action=action,
        document=clean_json(dict(document)),
        author_id=None if user is None else user.pk,
        author_label="" if actor is None else shorten(str(actor), 200),
        created_at=timezone.now(),
    )


def catch_up(kind: Kind[Any], name: str, found: Found[Any]) -> None:
    """Record what was changed past the services since the last revision, so that the history has no hole."""
    newest = of(kind, name).first()
    known = newest is not None and newest.action != Action.DELETED and newest.version == found.version
    if not known and found.version is not None:
        record(kind, name, Action.OUTSIDE, version=found.version, document=kind.shown(found.document), actor=None)


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Return, for each field that differs, its value in `before` and in `after`."""
    fields = dict.fromkeys((*before, *after))
    return {field: (before.get(field), after.get(field)) for field in fields if before.get(field) != after.get(field)}


def since(kind: Kind[Any], name: str, version: str, now: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Return what differs between a version and now; nothing when the version is not in the history."""
    then = of(kind, name).filter(version=version).first()
    return {} if then is None else changed_fields(then.document, now)


def log(kind: Kind[Any], name: str, action: Action, *, fields: tuple[str, ...], actor: Actor) -> None:
    """Write the admin's own log entry when a person acts, under the address of the definition's row."""
    if actor.user is None:
        return
    flag = _FLAGS.get(action, CHANGE)
    said = {ADDITION: {"added": {}}, CHANGE: {"changed": {"fields": list(fields)}}, DELETION: {"deleted": {}}}
    LogEntry.objects.create(
        user_id=cast("int", actor.user.pk),
        content_type_id=ContentType.objects.get_for_model(MODELS[kind.name]).pk,
        object_id=row_key(Source.MANAGED, name),
        object_repr=name[:200],
        action_flag=flag,
        change_message=json.dumps([said[flag]]),
    )
