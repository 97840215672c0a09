"""How often a caller may ask, counted over all processes.

Each process takes its caller's requests out of the shared count a block at a time, so that most requests write
nothing. All processes together never let more through than the limit; a process that holds an unused part of a
block may make it a few less.
"""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.db import connection

from access.models import Allowance

WINDOW_SECONDS: Final = 60
_BLOCKS_PER_LIMIT: Final = 20
_MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a request is let through, how many more are, and when the count starts anew (seconds)."""

    granted: bool
    limit: int
    remaining: int
    reset_seconds: int


@dataclass(slots=True)
class _Held:
    window: int
    own: int  # what this process may still let through without asking
    left_for_all: int


_held: dict[str, _Held] = {}
_lock = threading.Lock()


def take(name: str, limit: int, *, now: float | None = None) -> Answer:
    """Count one request of `name` (scope and caller) against `limit` per WINDOW_SECONDS."""
    now = time.time() if now is None else now
    window = int(now) // WINDOW_SECONDS * WINDOW_SECONDS
    key = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    answer = _from_held(key, window, limit, now)
    if answer is None:
        asked = _ask(key, window, limit)  # outside the lock: the database may let this caller wait, not the others
        with _lock:
            if len(_held) >= _MOST_REMEMBERED:
                _held.clear()
            held = _held.get(key)
            if held is not None and held.window == window:
                asked.own += held.own
            _held[key] = asked
        answer = _from_held(key, window, limit, now)
    return answer or Answer(False, limit, 0, _until_next(window, now))


def _from_held(key: str, window: int, limit: int, now: float) -> Answer | None:
    """An answer out of what this process knows; None when it has to ask the database."""
    with _lock:
        held = _held.get(key)
        if held is None or held.window != window or (held.own == 0 and held.left_for_all > 0):
            return None
        granted = held.own > 0
        held.own -= granted
        return Answer(granted, limit, held.own + held.left_for_all, _until_next(window, now))


def _until_next(window: int, now: float) -> int:
    return max(1, window + WINDOW_SECONDS - int(now))


def forget() -> None:
    """Let go of what this process holds. For tests."""
    with _lock:
        _held.clear()


def _ask(key: str, window: int, limit: int) -> _Held:
    block = max(1, limit // _BLOCKS_PER_LIMIT)
    with connection.cursor() as cursor:
        cursor.execute(_take_a_block(), [key, window, block])
        taken = cursor.fetchone()[0]
    own = min(block, max(0, limit - (taken - block)))
    return _Held(window, own, max(0, limit - taken))


@cache
def _take_a_block() -> str:
    table, window = Allowance._meta.db_table, connection.ops.quote_name("window")
    return (
        f"INSERT INTO {table} (key, {window}, taken) VALUES (%s, %s, %s) ON CONFLICT (key) DO UPDATE SET"
        f" taken = CASE WHEN {table}.{window} = excluded.{window} THEN {table}.taken ELSE 0 END + excluded.taken,"
        f" {window} = excluded.{window} RETURNING taken"
    )
