"""What a reader may see, and what one who was there before has to be given again."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.utils.crypto import constant_time_compare

from runs.event_types import EventType
from runs.models import Event, Thread
from runs.transcript import from_json

if TYPE_CHECKING:
    from uuid import UUID

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

ACCESS_SECONDS = 1.0  # how long one look at the rights of a reader holds while events keep coming

# After these nothing more is added to a reply: it is whole, its run is over, or another worker begins it anew.
_CLOSING = (EventType.MESSAGE, EventType.RUN_ENDED, EventType.RUN_STARTED)
MAX_CURSOR = 2**63 - 1


def cursor_of(query: str) -> int:
    """The `after` of a query string: a seq, or 0 for anything that is none."""
    value = parse_qs(query).get("after", ["0"])[0]
    return min(int(value), MAX_CURSOR) if value.isascii() and value.isdigit() and len(value) <= 19 else 0


def open_reply(thread_id: UUID, after: int) -> list[Event]:
    """The deltas up to `after` of a reply that nobody had finished by then, oldest first.

    A reader who comes back in the middle of a reply has seen them, but this connection has not rendered them.
    """
    if after <= 0:
        return []
    seen = Event.objects.filter(thread_id=thread_id, seq__lte=after)
    last = seen.filter(type=EventType.DELTA).order_by("-seq").first()
    if last is None:
        return []
    run = seen.filter(run_id=last.run_id)
    closing = run.filter(type__in=_CLOSING).order_by("-seq").first()
    if closing is not None and closing.seq > last.seq:
        return []
    began = closing.seq if closing is not None else 0
    deltas = list(run.filter(type=EventType.DELTA, seq__gt=began).order_by("seq"))
    key = from_json(last.data).get("id")
    return [delta for delta in deltas if from_json(delta.data).get("id") == key]


def may_read(user: AbstractBaseUser | AnonymousUser, thread_id: UUID) -> bool:
    """Whether this person owns the thread and is still active, by the database and not by what a session remembers."""
    return Thread.objects.filter(pk=thread_id, owner_id=user.pk, owner__is_active=True).exists()


def still_signed_in(session_key: str | None, user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether a session still stands for this person: not logged out of, and no older than their password.

    Django's own look at a session may give it a new key, which a socket cannot hand to the browser.
    """
    stored = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    signed_in = stored.get(SESSION_KEY)
    if signed_in != str(user.pk):
        return False
    person = get_user_model()._default_manager.filter(pk=signed_in, is_active=True).first()
    if person is None:
        return False
    proof = stored.get(HASH_SESSION_KEY, "")
    valid = (person.get_session_auth_hash(), *person.get_session_auth_fallback_hash())
    return any(constant_time_compare(proof, one) for one in valid)


class Access:
    """The right of one person to one thread, asked again while events flow, but not for every batch of a burst."""

    def __init__(self, user: AbstractBaseUser | AnonymousUser, thread_id: UUID) -> None:
        self._user, self._thread_id = user, thread_id
        self._holds_until = 0.0

    async def holds(self) -> bool:
        now = time.monotonic()
        if now < self._holds_until:
            return True
        if not await database_sync_to_async(may_read)(self._user, self._thread_id):
            return False
        self._holds_until = now + ACCESS_SECONDS
        return True
