"""Says that something changed, never what it is: readers look at the rows.

A ring is cheap and may be lost or doubled. `Ring.threads is None` means "anything may have changed": a connection that
was down does not know what it missed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from django.db import connection, transaction

from runs.doorbell.ring import CHANNEL, EVERYTHING, Listener, Ring, parse, payloads

__all__ = ["CHANNEL", "EVERYTHING", "Doorbell", "Listener", "Ring", "parse", "payloads", "ring_at_commit"]


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
        return
    from runs.doorbell.sqlite import send

    def ring_all() -> None:
        _local.ring(ring)
        send(payloads(ring))

    transaction.on_commit(ring_all)


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
