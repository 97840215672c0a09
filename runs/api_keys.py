"""Keys for programs: made once, shown once, kept as a SHA-256. A key is checked at each request."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
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


def make_key(
    owner: User, name: str, scopes: Iterable[str], expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
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
    valid = ApiKey.objects.filter(digest=digest(key), revoked_at__isnull=True, owner__is_active=True)
    name = f"owner__{get_user_model().USERNAME_FIELD}"
    row = valid.values_list("owner_id", name, "scopes", "expires_at").first()
    if row is None or (row[3] is not None and row[3] <= timezone.now()):
        return None
    return Caller(row[0], row[1], frozenset(row[2]))


def revoke(key_id: int) -> bool:
    """Make a key useless. False when there is none, or it was revoked before."""
    return ApiKey.objects.filter(pk=key_id, revoked_at__isnull=True).update(revoked_at=timezone.now()) == 1
