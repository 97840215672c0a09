"""One per ASGI process: the doorbell's rings become one read per watched thread, shared by all its followers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from django.db import Error as DatabaseError
from django.db import close_old_connections, connections

from runs import log
from runs.doorbell import Doorbell, Ring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from runs.log import LogRow

logger = logging.getLogger(__name__)
LOOK_SECONDS = 1.0  # a ring that got lost costs this much
_TAIL_ROWS = 4096
_GATHER_SECONDS = 0.004  # rings that come in a burst share one read


class Feed:
    """The shared tail of one thread. A follower that has fallen behind it reads the rows themselves."""

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor
        self.tail: deque[LogRow] = deque(maxlen=_TAIL_ROWS)
        self.followers = 0
        self.changed = asyncio.Event()

    def add(self, rows: list[LogRow]) -> None:
        self.tail.extend(rows)
        self.cursor = rows[-1].seq
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, seq: int) -> list[LogRow] | None:
        """The rows past `seq`, or None when the tail no longer reaches back so far."""
        if seq >= self.cursor:
            return []
        if not self.tail or self.tail[0].seq > seq + 1:
            return None
        return [row for row in self.tail if row.seq > seq]


class Relay:
    """Start it on the loop that serves; `follow` from any coroutine of that loop."""

    def __init__(self) -> None:
        self._feeds: dict[UUID, Feed] = {}
        self._dirty: set[UUID] = set()
        self._all_dirty = False
        self._rung = asyncio.Event()
        self._reader: ThreadPoolExecutor | None = None
        self._pulling: asyncio.Task[None] | None = None
        self._bell = Doorbell(self._ring)

    async def start(self) -> None:
        if self._pulling is None:
            self._reader = ThreadPoolExecutor(1, thread_name_prefix="relay-db")
            self._bell.start()
            self._pulling = asyncio.get_running_loop().create_task(self._pull())

    async def stop(self) -> None:
        if self._pulling is None or self._reader is None:
            return
        await self._bell.stop()
        self._pulling.cancel()
        await asyncio.gather(self._pulling, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._reader, connections.close_all)
        self._reader.shutdown(wait=False)
        self._pulling = self._reader = None

    async def follow(self, thread_id: UUID, after: int = 0) -> AsyncIterator[list[LogRow]]:
        """Batches of rows past `after`, gapless and in order: what is stored, then what comes, until the caller stops.

        From 0, the pieces of replies that are stored whole are left out.
        """
        await self.start()
        feed = self._feeds.get(thread_id)
        if feed is None:
            # Registered before the first read: an event written between the two would otherwise reach nobody.
            feed = self._feeds[thread_id] = Feed(0)
        feed.followers += 1
        try:
            newest = (await self._call(log.last_seqs, [thread_id])).get(thread_id, 0)
            feed.cursor = max(feed.cursor, newest)
            after = max(0, min(after, newest))
            from_start = after == 0
            while True:
                changed, upto = feed.changed, feed.cursor
                rows = feed.after(after)
                if rows is None:
                    rows = await self._call(log.read, thread_id, after)
                if rows:
                    after = rows[-1].seq
                    yield log.without_settled_deltas(rows) if from_start else rows
                    from_start = from_start and len(rows) == log.CHUNK
                elif after < upto:
                    after = upto  # the rows up to there were pruned
                else:
                    await changed.wait()
        finally:
            feed.followers -= 1
            if not feed.followers and self._feeds.get(thread_id) is feed:
                del self._feeds[thread_id]

    def _ring(self, ring: Ring) -> None:
        if ring.threads is None:
            self._all_dirty = bool(self._feeds)
        else:
            self._dirty.update(thread_id for thread_id in ring.threads if thread_id in self._feeds)
        if self._all_dirty or self._dirty:
            self._rung.set()

    async def _pull(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._rung.wait(), LOOK_SECONDS)
                await asyncio.sleep(_GATHER_SECONDS)
            except TimeoutError:
                self._all_dirty = bool(self._feeds)
            self._rung.clear()
            try:
                await self._read_dirty()
            except DatabaseError as fault:
                logger.warning("relay: %s; reading again soon", fault)
                self._all_dirty = True
                await asyncio.sleep(LOOK_SECONDS)

    async def _read_dirty(self) -> None:
        if self._all_dirty:
            self._all_dirty = False
            newest = await self._call(log.last_seqs, list(self._feeds))
            self._dirty.update(pk for pk, seq in newest.items() if pk in self._feeds and seq > self._feeds[pk].cursor)
        dirty, self._dirty = self._dirty, set()
        cursors = {thread_id: self._feeds[thread_id].cursor for thread_id in dirty if thread_id in self._feeds}
        if not cursors:
            return
        found = await self._call(log.read_many, cursors)
        for thread_id, rows in found.items():
            if thread_id in self._feeds and self._feeds[thread_id].cursor == cursors[thread_id]:
                self._feeds[thread_id].add(rows)
        if sum(len(rows) for rows in found.values()) >= log.CHUNK:
            self._dirty.update(cursors)
            self._rung.set()

    async def _call(self, function, *arguments):  # type: ignore[no-untyped-def]
        assert self._reader is not None
        return await asyncio.get_running_loop().run_in_executor(self._reader, _with_connection, function, arguments)


def _with_connection(function, arguments):  # type: ignore[no-untyped-def]
    close_old_connections()
    return function(*arguments)


_relays: dict[asyncio.AbstractEventLoop, Relay] = {}


def relay() -> Relay:
    """The relay of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _relays:
        for closed in [known for known in _relays if known.is_closed()]:
            del _relays[closed]
        _relays[loop] = Relay()
    return _relays[loop]
