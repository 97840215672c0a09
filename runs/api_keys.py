"""Keys for programs: made once, shown once, kept as a SHA-256. A key is checked at each request."""

from __future__ import annotations

import functools
import hashlib
import json
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from engine.text import clean
from runs.errors import BadInput
from runs.models import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

_MARK = "sa_live_"
_SHOWN = 12


class Scope(StrEnum):
    READ = "read"
    RUN = "run"
    ADMIN = "admin"


def make_key(owner: User, name: str, scopes: Iterable[str], expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """A new key: its row and the key itself, which cannot be read again. Raises BadInput for unknown scopes."""
    wanted = sorted(set(scopes))
    if unknown := [scope for scope in wanted if scope not in set(Scope)]:
        raise BadInput("scopes", f"unknown scope {unknown[0]}; scopes are {', '.join(Scope)}")
    if not wanted:
        raise BadInput("scopes", "choose at least one scope")
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


def digest(key: str) -> str:
    # The key has 256 random bits: a plain hash cannot be searched, a slow one would only slow every request.
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a valid key speaks for, and what it may do."""

    owner_id: int
    username: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        """`admin` includes everything, `run` includes reading."""
        if Scope.ADMIN in self.scopes or scope in self.scopes:
            return True
        return scope is Scope.READ and Scope.RUN in self.scopes


def authenticate(key: str) -> Caller | None:
    """Whom the key speaks for, when it is neither revoked nor expired and its owner is active."""
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(_valid_key(), [digest(key), now])
        row = cursor.fetchone()
    if row is None:
        return None
    scopes = json.loads(row[2]) if isinstance(row[2], str) else row[2]
    return Caller(row[0], row[1], frozenset(scopes))


@functools.cache
def _valid_key() -> str:
    # Written out: each request of a program asks this, and building the query took longer than answering it.
    people: Any = get_user_model()._meta
    name = people.get_field(get_user_model().USERNAME_FIELD).column
    return (
        f"SELECT k.owner_id, p.{name}, k.scopes FROM {ApiKey._meta.db_table} k"
        f" JOIN {people.db_table} p ON p.{people.pk.column} = k.owner_id"
        " WHERE k.digest = %s AND k.revoked_at IS NULL AND p.is_active"
        " AND (k.expires_at IS NULL OR k.expires_at > %s)"
    )


def revoke(key_id: int) -> bool:
    """Make a key useless. False when there is none, or it was revoked before."""
    return ApiKey.objects.filter(pk=key_id, revoked_at__isnull=True).update(revoked_at=timezone.now()) == 1
