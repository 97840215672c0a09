"""One per ASGI process: the doorbell's rings become one read per watched thread, shared by all its followers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection, connections

from runs import log
from runs.doorbell import Doorbell, Ring

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from uuid import UUID

    from runs.doorbell import Listener
    from runs.log import LogRow

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
LOOK_SECONDS = 1.0  # a ring that got lost costs this much
_TAIL_ROWS = 4096
_GATHER_SECONDS = 0.001  # rings that come in a burst share one read
_HOUSEKEEPING_SECONDS = 30.0


class Bell(Protocol):
    """Calls the listener it was made with whenever something may have changed."""

    def start(self) -> None: ...
    async def stop(self) -> None: ...


class Feed:
    """The shared tail of one thread: every row past `since` up to `cursor`. Who is behind it reads the rows again."""

    def __init__(self) -> None:
        self.cursor: int | None = None  # None until the thread was looked at for the first time
        self.since = 0
        self.tail: deque[LogRow] = deque()
        self.followers = 0
        self.closed = False
        self.changed = asyncio.Event()

    def open(self, newest: int) -> None:
        if self.cursor is None:
            self.cursor = self.since = newest

    def add(self, rows: list[LogRow]) -> None:
        self.tail.extend(rows)
        self.cursor = rows[-1].seq
        while len(self.tail) > _TAIL_ROWS:
            self.since = self.tail.popleft().seq
        self._wake()

    def close(self) -> None:
        self.closed = True
        self._wake()

    def after(self, seq: int) -> list[LogRow] | None:
        """The rows past `seq`, or None when the tail does not reach back so far."""
        if seq < self.since:
            return None
        rows = list(takewhile(lambda row: row.seq > seq, reversed(self.tail)))
        return rows[::-1]

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Relay:
    """Start it on the loop that serves; `follow` from any coroutine of that loop."""

    def __init__(self, *, doorbell: Callable[[Listener], Bell] = Doorbell, look_seconds: float = LOOK_SECONDS) -> None:
        self._feeds: dict[UUID, Feed] = {}
        self._dirty: set[UUID] = set()
        self._all_dirty = False
        self._rung = asyncio.Event()
        self._reader: ThreadPoolExecutor | None = None
        self._pulling: asyncio.Task[None] | None = None
        self._look_seconds = look_seconds
        self._housekeeping_at = time.monotonic() + _HOUSEKEEPING_SECONDS
        self._bell = doorbell(self._ring)

    async def start(self) -> None:
        if self._pulling is None:
            self._reader = ThreadPoolExecutor(1, thread_name_prefix="relay-db")
            self._bell.start()
            self._pulling = asyncio.get_running_loop().create_task(self._pull())

    async def stop(self) -> None:
        """End every `follow`, which simply stops giving rows, and let the connection go."""
        if self._pulling is None or self._reader is None:
            return
        reader, pulling = self._reader, self._pulling
        self._pulling = self._reader = None
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()
        await self._bell.stop()
        pulling.cancel()
        await asyncio.gather(pulling, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(reader, connections.close_all)
        reader.shutdown(wait=False)

    async def follow(self, thread_id: UUID, after: int = 0) -> AsyncGenerator[list[LogRow]]:
        """Batches of rows past `after`, gapless and in order: what is stored, then what comes, until the caller stops.

        From 0, the pieces of replies that are stored whole are left out. A number beyond the thread's end counts as
        its end. Ends by itself when the relay stops; raises the database's error when the rows cannot be read.
        """
        await self.start()
        # Registered before the first read: an event written between the two would otherwise reach nobody.
        feed = self._feeds.setdefault(thread_id, Feed())
        feed.followers += 1
        try:
            after = await self._place(thread_id, feed, after)
            from_start = after == 0
            while not feed.closed:
                changed, upto = feed.changed, feed.cursor or 0
                rows = await self._rows(thread_id, feed, after)
                if rows:
                    after = rows[-1].seq
                    if from_start:
                        from_start = len(rows) >= log.CHUNK
                        rows = await self._without_settled(thread_id, rows, more=from_start)
                    if rows:
                        yield rows
                elif after < upto:
                    after = upto  # the rows up to there were pruned
                else:
                    await changed.wait()
        finally:
            self._leave(thread_id, feed)

    def _leave(self, thread_id: UUID, feed: Feed) -> None:
        feed.followers -= 1
        if not feed.followers and self._feeds.get(thread_id) is feed:
            del self._feeds[thread_id]

    async def _place(self, thread_id: UUID, feed: Feed, after: int) -> int:
        """Where the follower begins; opens the feed when nobody has."""
        if feed.cursor is None or after > feed.cursor:
            newest = (await self._call(log.last_seqs, [thread_id])).get(thread_id, 0)
            feed.open(newest)
            if thread_id in self._dirty:
                self._rung.set()  # rung before the feed was open
            after = min(after, newest)
        return max(0, after)

    async def _rows(self, thread_id: UUID, feed: Feed, after: int) -> list[LogRow]:
        rows = feed.after(after)
        return await self._call(log.read, thread_id, after) if rows is None else rows

    async def _without_settled(self, thread_id: UUID, rows: list[LogRow], *, more: bool) -> list[LogRow]:
        if more and self._reader is not None:  # what settles these pieces may stand in rows that are not read yet
            return log.without_settled(rows, await self._call(log.settled_upto, thread_id))
        return log.without_settled_deltas(rows)

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
                await asyncio.wait_for(self._rung.wait(), self._look_seconds)
                await asyncio.sleep(_GATHER_SECONDS)
            except TimeoutError:
                self._all_dirty = bool(self._feeds)
            self._rung.clear()
            try:
                await self._read_dirty()
            except DatabaseError as fault:
                logger.warning("relay: %s; reading again soon", fault)
                self._all_dirty = True
                await asyncio.sleep(self._look_seconds)
                self._rung.set()

    async def _read_dirty(self) -> None:
        if self._all_dirty:
            self._all_dirty = False
            opened = [pk for pk, feed in self._feeds.items() if feed.cursor is not None]
            self._dirty.update(pk for pk, feed in self._feeds.items() if feed.cursor is None)
            newest = await self._call(log.last_seqs, opened) if opened else {}
            self._dirty.update(pk for pk, seq in newest.items() if seq > self._cursor(pk, beyond=seq))
        ready = {pk for pk in self._dirty if pk not in self._feeds or self._feeds[pk].cursor is not None}
        self._dirty -= ready  # those that nobody has opened yet stay, and are read once they are
        cursors = {pk: cursor for pk in ready if pk in self._feeds and (cursor := self._feeds[pk].cursor) is not None}
        if not cursors:
            return
        found = await self._call(log.read_many, cursors)
        for thread_id, rows in found.items():
            if thread_id in self._feeds and self._feeds[thread_id].cursor == cursors[thread_id]:
                self._feeds[thread_id].add(rows)
        if sum(len(rows) for rows in found.values()) >= log.CHUNK:
            self._dirty.update(cursors)
            self._rung.set()

    def _cursor(self, thread_id: UUID, *, beyond: int) -> int:
        feed = self._feeds.get(thread_id)
        return beyond if feed is None or feed.cursor is None else feed.cursor

    async def _call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        if self._reader is None:
            raise RuntimeError("the relay is not running")
        return await asyncio.get_running_loop().run_in_executor(self._reader, self._read, function, arguments)

    def _read(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        if time.monotonic() >= self._housekeeping_at:
            self._housekeeping_at = time.monotonic() + _HOUSEKEEPING_SECONDS
            close_old_connections()
        try:
            return function(*arguments)
        except DatabaseError:
            connection.close()  # a broken connection would fail every later read too
            raise


_relays: dict[asyncio.AbstractEventLoop, Relay] = {}


def relay() -> Relay:
    """The relay of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _relays:
        for closed in [known for known in _relays if known.is_closed()]:
            del _relays[closed]
        _relays[loop] = Relay()
    return _relays[loop]
