"""The body of an answer: server-sent events however the reads cut them, or one JSON document."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import aiohttp

from engine.models.openai_compatible_reply import DONE
from engine.models.openai_compatible_wire import UnreadableAnswer, decode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

MAX_ANSWER_BYTES: Final = 16 * 2**20  # of one event, or of an answer that is not streamed
END_WAIT_SECONDS: Final = 0.2  # for the end of a body whose last event is there, so that its connection can be kept


async def payloads(response: aiohttp.ClientResponse) -> AsyncGenerator[list[bytes]]:
    """The data of the events of a stream, those of one read together; a whole JSON answer is one event.

    Raises UnreadableAnswer for a body that holds no event at all, and what aiohttp raises for a lost connection.
    """
    if response.content_type == "application/json":
        yield [await read_at_most(response), DONE]
        return
    events = EventSplitter()
    while read := await response.content.readany():
        found = events.feed(read)
        if found:
            yield found
        if found[-1:] == [DONE]:
            await _await_end(response.content)
            return
    last = events.rest()
    if last:
        yield [last]
    elif events.is_garbage:
        raise UnreadableAnswer("the model server's answer is not a stream of events")


async def _await_end(content: aiohttp.StreamReader) -> None:
    try:
        async with asyncio.timeout(END_WAIT_SECONDS):
            await content.readany()
    except (TimeoutError, aiohttp.ClientError):
        return  # the answer is complete; its connection is not kept


async def read_at_most(response: aiohttp.ClientResponse, limit_bytes: int = MAX_ANSWER_BYTES) -> bytes:
    """The whole body. Raises UnreadableAnswer when it is longer."""
    parts, size = [], 0
    while part := await response.content.readany():
        size += len(part)
        if size > limit_bytes:
            raise UnreadableAnswer(f"the model server's answer is longer than {limit_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


class EventSplitter:
    """Splits the bytes of a stream of server-sent events, wherever the reads cut them."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []  # the beginning of a line
        self._data: list[bytes] = []  # the data lines of the event that is not finished
        self._size = 0
        self._seen = self._began = False

    @property
    def is_garbage(self) -> bool:
        """Whether there were bytes, but never a line of data among them."""
        return self._began and not self._seen

    def feed(self, read: bytes) -> list[bytes]:
        """The data of each event that ends in this read. Raises UnreadableAnswer for an event above 16 MiB."""
        self._began = True
        self._pending.append(read)
        self._size += len(read)
        if self._size > MAX_ANSWER_BYTES:
            raise UnreadableAnswer(f"an event of the model server is longer than {MAX_ANSWER_BYTES} bytes")
        if b"\n" not in read:
            return []
        *lines, rest = b"".join(self._pending).split(b"\n")
        self._pending = [rest] if rest else []
        events = [event for line in lines if (event := self._line(line.rstrip(b"\r")))]
        self._size = len(rest) + sum(map(len, self._data))
        return events

    def rest(self) -> bytes:
        """An event whose closing blank line never came, if it is complete all the same."""
        last = self._line(b"".join(self._pending).rstrip(b"\r")) or self._line(b"")
        try:
            return last if last == DONE or decode(last) else b""
        except UnreadableAnswer:
            return b""  # cut off: the missing finish says so better than broken JSON

    def _line(self, line: bytes) -> bytes:
        """The event's data when this line ends one, else nothing."""
        if line.startswith(b"data:"):
            self._seen = True
            self._data.append(line[5:].strip())
        elif not line and self._data:
            event, self._data = b"\n".join(self._data), []
            return event
        return b""
