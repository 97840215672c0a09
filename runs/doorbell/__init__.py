"""Says that something changed, never what it is: readers look at the rows.

A ring is cheap and may be lost or doubled. `Ring.threads is None` means "anything may have changed" (SQLite cannot
say more, and a connection that was down does not know what it missed).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

CHANNEL = "runs"
_IDS_PER_PAYLOAD = 150  # 36 characters and a space each; PostgreSQL takes 8,000 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """Which threads have new events, whether the queue has new rows, which runs somebody wants stopped."""

    threads: frozenset[UUID] | None = frozenset()
    queue: bool = False
    cancels: frozenset[UUID] = frozenset()

    def __bool__(self) -> bool:
        return self.threads is None or bool(self.threads or self.queue or self.cancels)


EVERYTHING = Ring(threads=None, queue=True)
Listener = Callable[[Ring], None]


class _Local:
    """The listeners of this process: they hear their own process's commits without a round trip."""

    def __init__(self) -> None:
        self.listeners: dict[Listener, asyncio.AbstractEventLoop] = {}

    def ring(self, ring: Ring) -> None:
        for listener, loop in list(self.listeners.items()):
            # A loop may end between a look at it and the call; the commit that rings has happened all the same.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(listener, ring)


_local = _Local()


def payloads(ring: Ring) -> list[str]:
    """The ring as texts that fit into notifications: `q`, `t <ids>`, `c <ids>`."""
    texts = ["q"] if ring.queue else []
    for letter, ids in (("t", sorted(ring.threads or ())), ("c", sorted(ring.cancels))):
        parts = (ids[start : start + _IDS_PER_PAYLOAD] for start in range(0, len(ids), _IDS_PER_PAYLOAD))
        texts.extend(f"{letter} {' '.join(map(str, part))}" for part in parts)
    return texts


def parse(payload: str) -> Ring:
    """The inverse of `payloads`; a text of another version means "anything may have changed"."""
    letter, _, rest = payload.partition(" ")
    try:
        ids = frozenset(UUID(text) for text in rest.split())
    except ValueError:
        return EVERYTHING
    if letter == "t":
        return Ring(threads=ids)
    if letter == "c":
        return Ring(cancels=ids)
    return Ring(queue=True) if letter == "q" else EVERYTHING


def ring_at_commit(ring: Ring) -> None:
    """Ring everybody when the current transaction commits; nobody when it does not. Call inside the transaction."""
    if not ring:
        return
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload", [CHANNEL, payloads(ring)]
            )
    transaction.on_commit(lambda: _local.ring(ring))


class Doorbell:
    """Calls `listener` on this event loop whenever something may have changed, in this process or another.

    Start it inside a running loop; `stop` before the loop ends.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._watch: asyncio.Task[None] | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        _local.listeners[self._listener] = loop
        if connection.vendor == "postgresql":
            from runs.doorbell.postgres import listen
        else:
            from runs.doorbell.sqlite import listen
        self._watch = loop.create_task(listen(self._listener))

    async def stop(self) -> None:
        _local.listeners.pop(self._listener, None)
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
