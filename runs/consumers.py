"""The socket of a thread: rows past the reader's cursor become frames. It knows nothing of agents."""

from __future__ import annotations

import asyncio
import logging
import time
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import orjson
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from runs.relay import relay
from runs.web.frames import Feed, Frame, Row
from runs.web.language import language_of
from runs.web.resume import Access, cursor_of, open_reply, still_signed_in

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from uuid import UUID

WATCH_SECONDS = 15.0  # an idle socket looks this often whether its reader may still be here
HEAVY_CHARACTERS = 4_000  # rows with more than this are rendered beside the event loop

logger = logging.getLogger(__name__)


class CloseCode(IntEnum):
    """Why the server closed. After 4401, 4403 and 4404 the page says so and does not try again; else it comes back."""

    FAULT = 1011
    RESTARTING = 1012
    SESSION_OVER = 4400
    NOT_SIGNED_IN = 4401
    NO_LONGER_ALLOWED = 4403
    NO_SUCH_THREAD = 4404


class ThreadConsumer(AsyncWebsocketConsumer):
    """Follows one thread for one person. What the browser sends is ignored: actions are POST requests."""

    async def connect(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._feed = Feed(language_of(self.scope))
        self._sending = asyncio.Lock()
        self._held_back = asyncio.Event()
        thread_id: UUID = self.scope["url_route"]["kwargs"]["thread_id"]
        user = self.scope.get("user")
        # Accepted first: a refused handshake reaches the page without code and reason.
        await self.accept()
        if user is None or not user.is_authenticated:
            await self.close(CloseCode.NOT_SIGNED_IN, "not signed in")
            return
        self._access = Access(user, thread_id)
        if not await self._access.holds():
            await self.close(CloseCode.NO_SUCH_THREAD, "no such thread")
            return
        after = cursor_of(self.scope.get("query_string", b"").decode("latin-1"))
        for part in (self._follow(thread_id, after), self._flush_when_due(), self._watch()):
            self._start(part)

    async def disconnect(self, code: int) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        """Take no notice: a page has nothing to say here, and odd input is no reason to stop showing."""

    def _start(self, part: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(part)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (fault := task.exception()) is None:
            return
        logger.error("a thread's socket stopped following", exc_info=fault)
        # Open but silent would be the worst of all: closed, the page comes back and resumes.
        self._tasks.append(asyncio.create_task(self.close(CloseCode.FAULT)))

    async def _follow(self, thread_id: UUID, after: int) -> None:
        if seen := await database_sync_to_async(open_reply)(thread_id, after):
            await self._show(seen)
        async for rows in relay().follow(thread_id, after):
            if not await self._access.holds():
                await self._dismiss()
                return
            await self._show(rows)
        # The relay gives no more rows when the server stops; the page resumes at the next one.
        await self.close(CloseCode.RESTARTING, "the server is stopping")

    async def _show(self, rows: Sequence[Row]) -> None:
        # One at a time: a patch taken before a finished message must not be sent after it.
        async with self._sending:
            now = time.monotonic()
            if sum(len(row.data) for row in rows) > HEAVY_CHARACTERS:
                frames = await asyncio.to_thread(self._feed.take, rows, now=now)
            else:
                frames = self._feed.take(rows, now=now)
            await self._send_all(frames)
        self._held_back.set()

    async def _flush_when_due(self) -> None:
        while True:
            await self._held_back.wait()
            self._held_back.clear()
            while (due := await self._due()) is not None:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                async with self._sending:
                    await self._send_all(self._feed.flush(now=time.monotonic()))

    async def _due(self) -> float | None:
        async with self._sending:  # the feed may be at work in a thread
            return self._feed.due

    async def _send_all(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            await self.send(text_data=orjson.dumps(frame).decode())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not await self._access.holds():
                await self._dismiss()
                return
            session_key = self.scope["session"].session_key
            if not await database_sync_to_async(still_signed_in)(session_key, self.scope["user"]):
                # Perhaps the same person has a new session by now: the next handshake decides.
                await self.close(CloseCode.SESSION_OVER, "the session is over")
                return

    async def _dismiss(self) -> None:
        await self.close(CloseCode.NO_LONGER_ALLOWED, "no longer allowed")
