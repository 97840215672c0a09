"""The time by which leases and deadlines are judged: the database's, where it runs on a machine of its own.

A worker whose own clock is wrong, or is set while it works, takes nobody's runs and gives no negative time. Between
two looks at the database the time goes on by a clock that nobody sets. SQLite has no other clock than its machine's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.utils import timezone

_LOOK_SECONDS: Final = 60.0
_STEP_SECONDS: Final = 1.0  # how far this machine's clock may move against the other before it counts as set


@dataclass(frozen=True, slots=True)
class _Anchor:
    database: datetime
    machine: datetime
    counted: float  # seconds of the monotonic clock


_anchor: _Anchor | None = None


def now() -> datetime:
    """The time as of the latest look. Asks nobody, so that it may be called anywhere."""
    if _anchor is None:
        return timezone.now()
    return _anchor.database + timedelta(seconds=time.monotonic() - _anchor.counted)


def look() -> None:
    """Ask the database for the time when the latest look is old or this machine's clock has been set since."""
    global _anchor
    if connection.vendor != "postgresql" or not _is_due():
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (answer,) = cursor.fetchone()
    _anchor = _Anchor(answer, timezone.now(), time.monotonic())


def _is_due() -> bool:
    if _anchor is None:
        return True
    counted = time.monotonic() - _anchor.counted
    moved = (timezone.now() - _anchor.machine).total_seconds() - counted
    return counted > _LOOK_SECONDS or abs(moved) > _STEP_SECONDS
