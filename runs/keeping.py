"""Threads as wholes: independent copies, histories cut to what is in force, and those whose time is over."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction
from django.utils import timezone

from runs import services
from runs.errors import ThreadNotFound
from runs.event_types import EventType
from runs.models import Event, Message, Thread, new_id
from runs.rows import key_of
from runs.statuses import ThreadStatus

if TYPE_CHECKING:
    from uuid import UUID

logger = logging.getLogger(__name__)
DELETE: Final = "delete"
KEEP_LATEST: Final = "keep_latest"
STRATEGIES: Final = (DELETE, KEEP_LATEST)
MAX_TTL_MINUTES: Final = 60 * 24 * 3650
_COPIED = (EventType.MESSAGE, EventType.STATE_UPDATED, EventType.THREAD_REWOUND)


@transaction.atomic
def copy_thread(*, thread_id: UUID, owner_id: int) -> Thread:
    """A new thread with the same history and metadata; runs, files and what else the log tells are not copied.

    The numbers of the log stay, so that the history is the same tree. Raises ThreadNotFound.
    """
    # The lock keeps the copy from ending in the middle of what a run is writing.
    source = Thread.objects.select_for_update().filter(pk=thread_id, owner_id=owner_id).first()
    if source is None:
        raise ThreadNotFound(thread_id)
    now = timezone.now()
    copied = Thread.objects.create(
        id=new_id(),
        owner_id=owner_id,
        title=source.title,
        last_seq=source.last_seq,
        metadata=source.metadata,
        values=source.values,
        ttl_minutes=source.ttl_minutes,
        ttl_strategy=source.ttl_strategy,
        created_at=now,
        updated_at=now,
    )
    kinds = ", ".join(f"'{kind.value}'" for kind in _COPIED)
    places = [key_of(copied.pk), key_of(source.pk)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO runs_event (thread_id, seq, run_id, type, at, data)"
            f" SELECT %s, seq, run_id, type, at, data FROM runs_event WHERE thread_id = %s AND type IN ({kinds})",
            places,
        )
        cursor.execute(
            "INSERT INTO runs_message (thread_id, seq, run_id, data, left_at)"
            " SELECT %s, seq, run_id, data, left_at FROM runs_message WHERE thread_id = %s",
            places,
        )
    return copied


def keep_latest(thread_id: UUID) -> None:
    """Remove what is no part of the thread's state any more: the branches of its history that were left."""
    with transaction.atomic():
        Thread.objects.select_for_update().filter(pk=thread_id).first()
        left = Message.objects.filter(thread_id=thread_id, left_at__isnull=False)
        Event.objects.filter(thread_id=thread_id, type=EventType.MESSAGE, seq__in=left.values("seq")).delete()
        left.delete()


def prune(thread_id: UUID, strategy: str, *, by: str) -> None:
    """Delete a thread, or keep only what is in force of it."""
    if strategy == KEEP_LATEST:
        keep_latest(thread_id)
    else:
        services.delete_thread(thread_id=thread_id, by=by)


def prune_expired(now: datetime, dry_run: bool) -> dict[str, int]:
    """Housekeeping: threads that nobody has touched for as long as whoever made them wanted them kept."""
    found = Thread.objects.filter(ttl_minutes__isnull=False).exclude(status=ThreadStatus.BUSY.value)
    over = [
        (thread_id, strategy)
        for thread_id, minutes, strategy, changed in found.values_list(
            "pk", "ttl_minutes", "ttl_strategy", "updated_at"
        )
        if changed + timedelta(minutes=minutes or 0) < now
    ]
    if not dry_run:
        for thread_id, strategy in over:
            prune(thread_id, strategy, by="ttl")
            # Once is enough for one that stays: it begins anew when it is used and asked for again.
            Thread.objects.filter(pk=thread_id).update(ttl_minutes=None)
    return {"threads_past_their_time": len(over)}
