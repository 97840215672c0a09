"""Keys for programs: made once, shown once, kept as a SHA-256. A key is checked at each request."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import secrets
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection
from django.utils import timezone

from access.errors import BadKeyRequest
from access.models import ApiKey
from engine.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

logger = logging.getLogger(__name__)

MOST_DAYS: Final = 36_500
_MARK: Final = "sa_live_"
_SHOWN: Final = 12
_USE_IS_WRITTEN_EVERY: Final = timedelta(minutes=1)


class Scope(StrEnum):
    READ = "read"
    RUN = "run"
    ADMIN = "admin"


def make_key(owner: User, name: str, scopes: Iterable[str], expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """A new key: its row and the key itself, which cannot be read again. Raises BadKeyRequest for unknown scopes."""
    wanted = sorted(set(scopes))
    if unknown := [scope for scope in wanted if scope not in set(Scope)]:
        raise BadKeyRequest("scopes", f"unknown scope {unknown[0]}; scopes are {', '.join(Scope)}")
    if not wanted:
        raise BadKeyRequest("scopes", "choose at least one scope")
    key = _MARK + secrets.token_urlsafe(32)
    row = ApiKey.objects.create(
        owner=owner,
        name=clean(name)[:80],
        prefix=key[:_SHOWN],
        digest=digest(key),
        scopes=wanted,
        expires_at=expires_at,
    )
    return row, key


def expiry(days: int | None) -> datetime | None:
    """When a key ends that is valid for `days` from now; None: never. Raises BadKeyRequest."""
    if days is None:
        return None
    if not 1 <= days <= MOST_DAYS:
        raise BadKeyRequest("days", f"expected 1 to {MOST_DAYS}")
    return timezone.now() + timedelta(days=days)


def digest(key: str) -> str:
    # The key has 256 random bits: a plain hash cannot be searched, a slow one would only slow every request.
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a valid key speaks for, and what it may do."""

    owner_id: int
    username: str
    scopes: frozenset[str]
    key_id: int
    key_name: str

    def may(self, scope: Scope) -> bool:
        """`admin` includes everything, `run` includes reading."""
        if Scope.ADMIN in self.scopes or scope in self.scopes:
            return True
        return scope is Scope.READ and Scope.RUN in self.scopes


def authenticate(key: str) -> Caller | None:
    """Whom the key speaks for, when it is neither revoked nor expired and its owner is active."""
    return authenticate_all([key]).get(key)


def in_process(owner_id: int, run_id: str) -> Caller | None:
    """Who a graph of a run asks as: the run's owner, who may run and read. None when they are not active any more."""
    user = get_user_model()._default_manager.filter(pk=owner_id, is_active=True).first()
    if user is None:
        return None
    return Caller(owner_id, user.get_username(), frozenset({Scope.RUN}), 0, f"run {run_id}")


def authenticate_all(given: Iterable[str]) -> dict[str, Caller]:
    """Whom each of these keys speaks for. Those that are not valid are missing."""
    now, adapt = timezone.now(), connection.ops.adapt_datetimefield_value
    by_digest = {digest(key): key for key in given}
    if not by_digest:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_valid_keys(len(by_digest)), [adapt(now - _USE_IS_WRITTEN_EVERY), adapt(now), *by_digest])
        found = cursor.fetchall()
    callers = {}
    for stored_digest, owner_id, username, scopes, key_id, name, use_is_due in found:
        if use_is_due:
            _write_use(key_id, now)
        readable = json.loads(scopes) if isinstance(scopes, str) else scopes
        callers[by_digest[stored_digest]] = Caller(owner_id, username, frozenset(readable), key_id, name)
    return callers


@functools.lru_cache(maxsize=64)
def _valid_keys(count: int) -> str:
    # Written out: each request of a program asks this, and building the query took longer than answering it.
    people: Any = get_user_model()._meta
    name = people.get_field(get_user_model().USERNAME_FIELD).column
    return (
        f"SELECT k.digest, k.owner_id, p.{name}, k.scopes, k.id, k.name,"
        " (k.last_used_at IS NULL OR k.last_used_at < %s)"
        f" FROM {ApiKey._meta.db_table} k"
        f" JOIN {people.db_table} p ON p.{people.pk.column} = k.owner_id"
        " WHERE k.revoked_at IS NULL AND p.is_active AND (k.expires_at IS NULL OR k.expires_at > %s)"
        f" AND k.digest IN ({', '.join(['%s'] * count)})"
    )


def _write_use(key_id: int, now: datetime) -> None:
    """Note that the key was used; of several processes that find it due at once, one writes."""
    due = ApiKey.objects.filter(pk=key_id).exclude(last_used_at__gte=now - _USE_IS_WRITTEN_EVERY)
    try:
        due.update(last_used_at=now)
    except DatabaseError:
        # A note for people: a request is not refused because it could not be written.
        logger.warning("the last use of API key %s could not be written", key_id, exc_info=True)


def keys_of(user: Any) -> QuerySet[ApiKey]:
    """The keys a person may see and revoke: their own, or everybody's with `access.all_keys`."""
    return ApiKey.objects.all() if user.has_perm("access.all_keys") else ApiKey.objects.filter(owner_id=user.pk)


def revoke(key_id: int) -> bool:
    """Make a key useless. False when there is none, or it was revoked before."""
    return ApiKey.objects.filter(pk=key_id, revoked_at__isnull=True).update(revoked_at=timezone.now()) == 1
