"""A TCP proxy whose streaming answers break in the middle."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_STREAMS = (b"text/event-stream", b"transfer-encoding: chunked")


class DroppingProxy:
    """Passes bytes on. The nth streaming answer is cut after the nth number of its bytes; later ones are whole."""

    def __init__(self, port: int, cuts: Sequence[int]) -> None:
        self._port = port
        self._cuts = list(cuts)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.requests: list[bytes] = []  # heads of the requests, as far as they came in one piece
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/langgraph"

    @property
    def cuts_left(self) -> int:
        return len(self._cuts)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, upstream_writer}
        up = asyncio.create_task(self._pass_up(reader, upstream_writer))
        try:
            await self._pass_down(upstream_reader, writer)
        finally:
            up.cancel()
            for end in (writer, upstream_writer):
                end.close()
                with contextlib.suppress(ConnectionError):
                    await end.wait_closed()
            self._writers -= {writer, upstream_writer}

    async def _pass_up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65_536):
                if piece.startswith((b"GET ", b"POST ")):
                    self.requests.append(piece.partition(b"\r\n\r\n")[0])
                writer.write(piece)
                await writer.drain()

    async def _pass_down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left: int | None = None
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65_536):
                if left is None and self._cuts and any(mark in piece[:1000].lower() for mark in _STREAMS):
                    left = self._cuts.pop(0)
                if left is not None and len(piece) > left:
                    writer.write(piece[:left])
                    await writer.drain()
                    return
                left = None if left is None else left - len(piece)
                writer.write(piece)
                await writer.drain()
