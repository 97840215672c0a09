"""Programs with a key: the real SDK, and plain HTTP where a test needs bytes and headers."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx
from django.contrib.auth import get_user_model
from django.db import connections
from langgraph_sdk import get_client

from access import keys as api_keys
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = itertools.count(1)


async def in_database(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Run ORM work on another thread, and leave no connection open there."""

    def work() -> Any:
        try:
            return function(*arguments, **keywords)
        finally:
            connections.close_all()

    return await asyncio.to_thread(work)


@dataclass(slots=True)
class Caller:
    """Somebody with a key, at one address."""

    user: Any
    key: str
    sdk: Any
    http: httpx.AsyncClient  # its base URL is the mount

    async def thread(self) -> str:
        return str((await self.sdk.threads.create())["thread_id"])

    async def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return await self.http.post(path, json=body, **options)

    async def close(self) -> None:
        await self.sdk.aclose()
        await self.http.aclose()


async def make_caller(url: str, scopes: tuple[str, ...] = ("run",), *, user: Any = None) -> Caller:
    """A caller with a key of these scopes; a new person unless one is given."""

    def made() -> tuple[Any, str]:
        owner = user or get_user_model().objects.create_user(f"caller-{next(_numbers)}")
        return owner, api_keys.make_key(owner, "test", scopes)[1]

    owner, key = await in_database(made)
    return caller_at(url, owner, key)


def caller_at(url: str, user: Any, key: str) -> Caller:
    http = httpx.AsyncClient(base_url=url, headers={"x-api-key": key}, timeout=PATIENCE_SECONDS)
    return Caller(user, key, get_client(url=url, api_key=key), http)


def asks(prompt: str, **options: Any) -> dict[str, Any]:
    """The body of a run request."""
    return {"assistant_id": "lead_agent", "input": said(prompt), **options}


def said(prompt: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt}]}


def contents(values: Any) -> list[str]:
    return [message["content"] for message in values["messages"]]


def unknown_id() -> str:
    return str(UUID(int=next(_numbers)))


@dataclass(frozen=True, slots=True)
class ServerEvent:
    name: str
    data: Any
    id: str | None


def events_of(body: str) -> list[ServerEvent]:
    """The events of a whole or broken stream; comments and an unfinished last one are left out."""
    events = []
    for block in body.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            events.append(ServerEvent(fields["event"], json.loads(fields["data"]), fields.get("id")))
    return events


async def stream_of(caller: Caller, place: str, *modes: str, after: str = "") -> list[ServerEvent]:
    """A run's stream to its end."""
    headers = {"last-event-id": after} if after else {}
    answer = await caller.http.get(f"{place}/stream", params={"stream_mode": modes}, headers=headers)
    assert answer.status_code == 200, answer.text
    return events_of(answer.text)


async def followed(caller: Caller, place: str) -> asyncio.Task[list[ServerEvent]]:
    """A run's stream that somebody reads by now; the task has its events when it has ended."""
    begun = asyncio.Event()

    async def read() -> list[ServerEvent]:
        text = ""
        async with caller.http.stream("GET", f"{place}/stream", timeout=60) as answer:
            async for piece in answer.aiter_text():
                text += piece
                begun.set()
        return events_of(text)

    task = asyncio.create_task(read())
    await asyncio.wait_for(begun.wait(), 60)
    return task


def text_in(parts: list[Any]) -> str:
    """The assistant's words in the parts of a `messages-tuple` stream."""
    chunks = [part.data[0] for part in parts if part.event == "messages"]
    return "".join(chunk["content"] for chunk in chunks if chunk["type"] == "AIMessageChunk")


async def eventually(holds: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> None:
    """Look at an outside fact that has no event of its own until it holds."""
    async with asyncio.timeout(seconds):
        while not await holds():
            await asyncio.sleep(0.01)


async def until_offered(caller: Caller, name: str) -> None:
    """Wait until the web process has looked again at who can be called; it does so every second or two."""

    async def offered() -> bool:
        return bool(await caller.sdk.assistants.search(graph_id=name))

    await eventually(offered)
