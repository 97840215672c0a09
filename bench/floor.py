"""The floor: the smallest server that has threads and runs. `python -m bench.floor --port 0 --model URL`.

One asyncio process, no database, no graph, no validation. It keeps nothing and checks nothing; what it
takes is the price of HTTP, of the model call and of one Python process, and every figure of the product
is read as a multiple of that.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aiohttp
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

Message = dict[str, Any]
TASK_TOOL = {"type": "function", "function": {"name": "task", "parameters": {"type": "object"}}}
MODEL_FAULTS = (aiohttp.ClientError, KeyError, ValueError)


def as_json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


@dataclass(slots=True)
class FloorRun:
    """A run and its events, already in wire form."""

    thread_id: str
    messages: list[Message]
    run_id: str = field(default_factory=lambda: str(uuid4()))
    status: str = "pending"
    events: list[bytes] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    driver: asyncio.Task[None] | None = None

    def emit(self, event: str, value: object) -> None:
        self.events.append(b"event: %s\ndata: %s\n\n" % (event.encode(), orjson.dumps(value)))
        self.changed.set()

    def end(self, status: str) -> None:
        self.status = status
        self.ended.set()
        self.changed.set()

    def wire(self) -> dict[str, Any]:
        return {"run_id": self.run_id, "thread_id": self.thread_id, "status": self.status}

    async def stream(self) -> AsyncIterator[bytes]:
        """Every event from the first on, then those to come. For one reader at a time."""
        yield b"event: metadata\ndata: %s\n\n" % orjson.dumps({"run_id": self.run_id})
        sent = 0
        while True:
            self.changed.clear()
            if sent < len(self.events):
                pending, sent = self.events[sent:], len(self.events)
                yield b"".join(pending)
            elif self.ended.is_set():
                return
            else:
                await self.changed.wait()


class Floor:
    """The server's state and its handlers."""

    def __init__(self, model_url: str) -> None:
        self.model_url = model_url
        self.threads: dict[str, list[Message]] = {}
        self.runs: dict[str, FloorRun] = {}

    @contextlib.asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as self.model:
            yield

    def application(self) -> Starlette:
        runs = "/threads/{thread_id}/runs"
        routes = [
            Route("/ok", self.ok),
            Route("/threads", self.create_thread, methods=["POST"]),
            Route(runs, self.create, methods=["POST"]),
            Route(f"{runs}/wait", self.wait, methods=["POST"]),
            Route(f"{runs}/stream", self.stream, methods=["POST"]),
            Route(f"{runs}/{{run_id}}", self.read),
            Route(f"{runs}/{{run_id}}/cancel", self.cancel, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=self.lifespan)

    async def ok(self, _request: Request) -> Response:
        return as_json({"ok": True})

    async def create_thread(self, _request: Request) -> Response:
        thread_id = str(uuid4())
        self.threads[thread_id] = []
        return as_json({"thread_id": thread_id, "status": "idle"})

    async def create(self, request: Request) -> Response:
        return as_json((await self._start(request)).wire())

    async def wait(self, request: Request) -> Response:
        run = await self._start(request)
        await run.ended.wait()
        return as_json({"messages": run.messages})

    async def stream(self, request: Request) -> Response:
        return StreamingResponse((await self._start(request)).stream(), media_type="text/event-stream")

    async def read(self, request: Request) -> Response:
        return as_json(self.runs[request.path_params["run_id"]].wire())

    async def cancel(self, request: Request) -> Response:
        driver = self.runs[request.path_params["run_id"]].driver
        if driver:
            driver.cancel()
        return Response(status_code=202)

    async def _start(self, request: Request) -> FloorRun:
        thread_id = request.path_params["thread_id"]
        messages = self.threads[thread_id]
        messages.extend(orjson.loads(await request.body())["input"]["messages"])
        run = FloorRun(thread_id, messages)
        self.runs[run.run_id] = run
        run.driver = asyncio.create_task(self._drive(run))
        return run

    async def _drive(self, run: FloorRun) -> None:
        """The agent loop: call the model, run its calls in parallel, until it calls none."""
        run.status = "running"
        try:
            while True:
                text, calls = await self._ask(run.messages, run, offers_task=True)
                run.messages.append({"role": "assistant", "content": text, "tool_calls": calls or None})
                if not calls:
                    break
                run.messages.extend(await asyncio.gather(*map(self._child, calls)))
        except asyncio.CancelledError:
            run.end("interrupted")
            raise
        except MODEL_FAULTS as fault:
            run.emit("error", {"error": type(fault).__name__, "message": str(fault)})
            run.end("error")
        else:
            run.end("success")

    async def _child(self, call: Message) -> Message:
        prompt = orjson.loads(call["function"]["arguments"])["prompt"]
        text, _ = await self._ask([{"role": "user", "content": prompt}], None, offers_task=False)
        return {"role": "tool", "tool_call_id": call["id"], "content": text}

    async def _ask(
        self, messages: list[Message], run: FloorRun | None, *, offers_task: bool
    ) -> tuple[str, list[Message]]:
        """One streamed model call. With a run, its tokens become the run's events."""
        body: dict[str, Any] = {"model": "scripted", "stream": True, "messages": messages}
        if offers_task:
            body["tools"] = [TASK_TOOL]
        texts: list[str] = []
        calls: list[Message] = []
        url, headers = f"{self.model_url}/chat/completions", {"Content-Type": "application/json"}
        async with self.model.post(url, data=orjson.dumps(body), headers=headers) as response:
            response.raise_for_status()
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                choices = orjson.loads(line[6:])["choices"]
                delta = choices[0]["delta"] if choices else {}
                calls += delta.get("tool_calls") or ()
                if delta.get("content"):
                    texts.append(delta["content"])
                    if run:
                        piece = {"type": "AIMessageChunk", "content": delta["content"], "id": run.run_id}
                        run.emit("messages", [piece, {"run_id": run.run_id}])
        return "".join(texts), calls


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.floor", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the first line says which")
    parser.add_argument("--model", required=True, help="base URL of an OpenAI-compatible server")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", options.port), backlog=2048)
    # asyncio does this only for sockets it has made itself; without it each answer waits 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"floor on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(Floor(options.model).application(), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
