"""A server that answers as it is told, well or badly, over real sockets; and what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

THREAD = "0190aaaa-0000-7000-8000-000000000001"
RUN = "0190aaaa-0000-7000-8000-000000000002"


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Act = Callable[[asyncio.StreamWriter, "Asked"], Awaitable[None]]


@dataclass
class Hostile:
    """`acts` by "METHOD /path" or "*"; what nobody said is answered like a sound server with one run."""

    port: int = 0
    acts: dict[str, Act] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=lambda: {"run_id": RUN, "thread_id": THREAD, "status": "running"})
    thread: dict[str, Any] = field(default_factory=lambda: {"thread_id": THREAD, "status": "busy", "values": None})
    assistants: list[Any] = field(default_factory=lambda: [{"assistant_id": "a", "graph_id": "worker"}])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [f"{one.method} {one.path.partition('?')[0]}" for one in self.asked]

    async def answer(self, writer: asyncio.StreamWriter, asked: Asked) -> None:
        path = asked.path.partition("?")[0]
        act = self.acts.get(f"{asked.method} {path}") or self.acts.get("*")
        if act is not None:
            await act(writer, asked)
            return
        await say(200, self._sound(asked.method, path))(writer, asked)

    def _sound(self, method: str, path: str) -> Any:
        if path == "/assistants/search":
            return self.assistants
        if path.endswith("/cancel"):
            return {}
        if method == "GET" and path.endswith("/runs"):
            return [self.run]
        return self.run if "/runs" in path else self.thread


def say(status: int, body: Any, content_type: str = "application/json", **headers: str) -> Act:
    """One whole answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def act(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"content-type: {content_type}", f"content-length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        await writer.drain()

    return act


def raw(content: bytes) -> Act:
    """Bytes as they are, and the end of the connection."""

    async def act(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        writer.write(content)
        await writer.drain()
        writer.close()

    return act


async def never(_writer: asyncio.StreamWriter, _asked: Asked) -> None:
    await asyncio.get_running_loop().create_future()


async def without_end(writer: asyncio.StreamWriter, _asked: Asked) -> None:
    """A body that goes on for as long as anybody reads it."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        await writer.drain()


async def drop_by_drop(writer: asyncio.StreamWriter, _asked: Asked) -> None:
    """A body of which something always comes, and never all of it."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


@asynccontextmanager
async def hostile_server():
    server_side = Hostile()
    connections: set[asyncio.Task] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        connections.add(task)
        try:
            while (asked := await _request(reader)) is not None:
                server_side.asked.append(asked)
                await server_side.answer(writer, asked)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            connections.discard(task)
            with suppress(Exception):
                writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    server_side.port = server.sockets[0].getsockname()[1]
    try:
        yield server_side
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _version = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, json.loads(body) if body else None)
