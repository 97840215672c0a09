"""Requests that start work may be sent again: with the same `Idempotency-Key` they are answered, not done, again."""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from access.errors import BadIdempotencyKey, KeyReused
from access.models import KeptAnswer

if TYPE_CHECKING:
    from datetime import datetime

KEPT_FOR: Final = timedelta(hours=24)
_ACCEPTABLE: Final = re.compile(r"[\x20-\x7e]{1,255}\Z")


def claim(*, owner_id: int, key: str, method: str, address: str, body: bytes) -> KeptAnswer:
    """The row of this key, in the caller's transaction: with `status` 0 the request is new and may be done now.

    A second request with the key waits here until the first one's transaction is over. Raises BadIdempotencyKey,
    and KeyReused when the key came with another request before.
    """
    if not _ACCEPTABLE.match(key):
        raise BadIdempotencyKey
    request = hashlib.sha256(b"\n".join((method.encode(), address.encode("utf-8", "replace"), body))).hexdigest()
    digest = hashlib.sha256(key.encode()).hexdigest()
    row, _new = KeptAnswer.objects.get_or_create(owner_id=owner_id, digest=digest, defaults={"request": request})
    if row.request != request:
        raise KeyReused
    return row


def keep(row: KeptAnswer, *, status: int, body: str, location: str) -> None:
    KeptAnswer.objects.filter(pk=row.pk).update(status=status, body=body, location=location)


def prune(now: datetime, dry_run: bool) -> dict[str, int]:
    """Remove answers that nobody asks for any more; see `settings.HOUSEKEEPING`."""
    old = KeptAnswer.objects.filter(created_at__lt=now - KEPT_FOR)
    return {"kept_answers": old.count() if dry_run else old.delete()[0]}
