"""The load: one server seen through the LangGraph wire, and what the scripted model saw meanwhile.

Scenarios with one request at a time use the real `langgraph_sdk`, as an integrator would. Those with many
use the same requests over aiohttp, because the SDK's client would then be what is measured.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
from langgraph_sdk import get_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ENDED = frozenset({"success", "error", "timeout", "interrupted", "cancelled"})


class WrongResult(Exception):
    """The server answered, but not what the script makes a right server answer."""


def user_input(prompt: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt}]}


@dataclass(slots=True)
class Wire:
    """A server that speaks `/threads` and `/threads/{id}/runs`. Use within `async with wire.connected()`."""

    url: str
    assistant: str
    headers: dict[str, str] = field(default_factory=dict)
    sdk: Any = None
    session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Wire]:
        # The SDK sets x-api-key itself and refuses it among the headers.
        rest = {name: value for name, value in self.headers.items() if name != "x-api-key"}
        self.sdk = get_client(url=self.url, api_key=self.headers.get("x-api-key"), headers=rest)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            headers=self.headers,
        ) as self.session:
            try:
                yield self
            finally:
                await self.sdk.aclose()

    async def new_thread(self) -> str:
        return str((await self._post("/threads", {}))["thread_id"])

    async def wait(self, thread_id: str, prompt: str) -> Any:
        return await self._post(f"/threads/{thread_id}/runs/wait", self._run(prompt))

    async def create(self, thread_id: str, prompt: str) -> str:
        return str((await self._post(f"/threads/{thread_id}/runs", self._run(prompt)))["run_id"])

    async def status(self, thread_id: str, run_id: str) -> str:
        assert self.session
        async with self.session.get(f"{self.url}/threads/{thread_id}/runs/{run_id}") as response:
            return str((await _json(response))["status"])

    async def sdk_wait(self, thread_id: str, prompt: str) -> Any:
        return await self.sdk.runs.wait(thread_id, self.assistant, input=user_input(prompt), raise_error=False)

    def sdk_stream(self, thread_id: str, prompt: str) -> AsyncIterator[Any]:
        stream: AsyncIterator[Any] = self.sdk.runs.stream(
            thread_id, self.assistant, input=user_input(prompt), stream_mode="messages-tuple"
        )
        return stream

    def _run(self, prompt: str) -> dict[str, Any]:
        return {"assistant_id": self.assistant, "input": user_input(prompt)}

    async def _post(self, path: str, body: object) -> Any:
        assert self.session
        async with self.session.post(self.url + path, json=body) as response:
            return await _json(response)


async def _json(response: aiohttp.ClientResponse) -> Any:
    body = await response.read()
    if response.status >= 300:
        raise WrongResult(f"{response.method} {response.url.path}: {response.status} {body[:300]!r}")
    return json.loads(body)


def token_of(part: Any) -> str:
    """The assistant's text in one part of a `messages-tuple` stream; empty for everything else."""
    message = part.data[0] if part.event.startswith("messages") and part.data else None
    if not isinstance(message, dict) or not str(message.get("type", "")).lower().startswith("ai"):
        return ""
    content = message.get("content") or ""
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content if isinstance(block, dict))
    return str(content)


@dataclass(slots=True)
class ModelAccount:
    """What the scripted model server has seen."""

    root_url: str
    session: aiohttp.ClientSession

    async def reset(self) -> None:
        async with self.session.post(f"{self.root_url}/reset"):
            pass

    async def counters(self) -> dict[str, int]:
        async with self.session.get(f"{self.root_url}/stats") as response:
            return dict(await response.json())

    async def calls(self, script_id: str) -> list[dict[str, Any]]:
        async with self.session.get(f"{self.root_url}/log", params={"id": script_id}) as response:
            return list(await response.json())
