"""The HTTP side: chat completions, whole or streamed, and what tests ask the server about itself.

`POST /v1/chat/completions` and `GET /v1/models` are OpenAI's. Beside them:

`GET /stats`: counters since the start or the last reset.
`GET /log`: one record per call, `?id=` for those of one script; times in seconds of CLOCK_MONOTONIC.
`POST /reset`: forget calls, counters, queue and responder; release every gate.
`POST /gates/NAME`: open a gate.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from aiohttp import web

from tests.scripted_model.reply import Ending, Reply, ScriptError
from tests.scripted_model.wire import GARBAGE_BODY, GARBAGE_STREAM, Encoder, error_body

if TYPE_CHECKING:
    from tests.scripted_model.calls import Ledger, ModelCall
    from tests.scripted_model.choice import ReplyChoice

MAX_BODY_BYTES = 64 * 2**20
STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
# The OpenAI client takes `retry-after: 0` for "not given" and backs off for half a second.
RETRY_AT_ONCE = {"Retry-After": "0", "Retry-After-Ms": "1"}
SPLIT_BYTES = 7  # coprime to the two, three and four bytes of UTF-8 characters: cuts fall inside them
UNPACED_BURST = 64  # deltas written before other connections get their turn


class ScriptedServer:
    """Serves the replies its `choice` makes and writes down every call."""

    def __init__(self, choice: ReplyChoice, ledger: Ledger) -> None:
        self.choice, self.ledger = choice, ledger
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/stats", self.stats)
        app.router.add_get("/log", self.log)
        app.router.add_post("/reset", self.forget)
        app.router.add_post("/gates/{name}", self.gate)
        return app

    async def listen(self, port: int) -> tuple[web.AppRunner, int]:
        """Serve on 127.0.0.1; port 0 takes a free one. Answers the runner to clean up and the port."""
        runner = web.AppRunner(self.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
        return runner, runner.addresses[0][1]

    def open_gate(self, name: str) -> None:
        self._gates[name].set()

    def reset(self) -> None:
        self.ledger.reset()
        self.choice.reset()
        for gate in self._gates.values():
            gate.set()
        self._gates.clear()

    async def models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def stats(self, _request: web.Request) -> web.Response:
        return web.json_response(self.ledger.counters())

    async def log(self, request: web.Request) -> web.Response:
        wanted = request.query.get("id")
        calls = [call.times() for call in self.ledger.calls if wanted in (None, call.script_id)]
        return web.json_response(calls)

    async def forget(self, _request: web.Request) -> web.Response:
        self.reset()
        return web.json_response({})

    async def gate(self, request: web.Request) -> web.Response:
        self.open_gate(request.match_info["name"])
        return web.json_response({})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return _error(400, "the body must be a JSON object with a list of messages")
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = self.ledger.begin(body, headers, len(raw))
        try:
            return await self._answer(request, call)
        except (asyncio.CancelledError, ConnectionResetError):
            if call.cut_at is None:
                call.disconnected_at = time.monotonic()
                self.ledger.disconnects += 1
            raise
        finally:
            self.ledger.end(call)

    async def _answer(self, request: web.Request, call: ModelCall) -> web.StreamResponse:
        try:
            reply = self.choice.reply_to(call)
        except ScriptError as error:
            return _noted(call, _error(400, str(error)))
        failure = self.ledger.next_failure(call, reply.fail_statuses) if reply.fail_statuses else None
        if failure:
            return _noted(call, _failure(failure, reply))
        await self._before_the_first_byte(reply)
        call.first_byte_at = time.monotonic()
        if reply.garbage:
            return _noted(call, _garbage(call.streamed))
        encoder = Encoder(reply, call)
        if not call.streamed:
            return await self._whole(request, call, encoder)
        if _fits_one_write(reply):
            body = encoder.opening() + b"".join(encoder.deltas()) + encoder.closing()
            return _noted(call, web.Response(body=body, headers=STREAM_HEADERS))
        return await self._stream(request, call, encoder)

    async def _before_the_first_byte(self, reply: Reply) -> None:
        if reply.sleep_seconds:
            await asyncio.sleep(reply.sleep_seconds)
        if reply.gate and reply.gate_after is None:
            await self._gates[reply.gate].wait()
        if reply.hang:
            await _for_ever()

    async def _whole(self, request: web.Request, call: ModelCall, encoder: Encoder) -> web.StreamResponse:
        body = encoder.whole()
        early_end = encoder.reply.early_end
        if early_end is None:
            return _noted(call, web.Response(body=body, content_type="application/json"))
        half = body[: len(body) // 2]
        if early_end[0] is Ending.CLOSE:
            return _noted(call, web.Response(body=half, content_type="application/json"))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(half)
        await _end_early(early_end[0], request, call)
        return response

    async def _stream(self, request: web.Request, call: ModelCall, encoder: Encoder) -> web.StreamResponse:
        response = web.StreamResponse(headers=STREAM_HEADERS)
        await response.prepare(request)
        reply = encoder.reply
        await _write(response, encoder.opening(), reply)
        deltas = list(encoder.deltas())
        early_end = reply.early_end
        await self._write_deltas(response, deltas[: early_end[1]] if early_end else deltas, reply)
        if early_end:
            if early_end[0] is Ending.ERROR:
                await _write(response, encoder.error(), reply)
            await _end_early(early_end[0], request, call)
            return response
        await _write(response, encoder.closing(), reply)
        return _noted(call, response)

    async def _write_deltas(self, response: web.StreamResponse, deltas: list[bytes], reply: Reply) -> None:
        started_at = time.monotonic()
        gate_at = None if reply.gate_after is None else min(reply.gate_after, len(deltas))
        for position, delta in enumerate([*deltas, b""]):
            if position == gate_at and reply.gate:
                await self._gates[reply.gate].wait()
            if reply.rate_per_second:
                # Against the start, not the previous delta, so that late wake-ups do not add up.
                due_at = started_at + position / reply.rate_per_second
                await asyncio.sleep(max(0.0, due_at - time.monotonic()))
            elif position % UNPACED_BURST == 0:
                await asyncio.sleep(0)
            await _write(response, delta, reply)


def _fits_one_write(reply: Reply) -> bool:
    """Whether nothing happens between the deltas: one write then costs a fraction of many."""
    return not (
        reply.rate_per_second
        or reply.split
        or reply.chunks is not None
        or reply.early_end
        or reply.gate_after is not None
        or (reply.tokens or 0) > UNPACED_BURST
    )


def _noted(call: ModelCall, response: web.StreamResponse) -> web.StreamResponse:
    call.status, call.ended_at = response.status, time.monotonic()
    return response


def _failure(status: int, reply: Reply) -> web.Response:
    asked = reply.retry_after_seconds
    headers = RETRY_AT_ONCE if asked is None else {"Retry-After": f"{asked:g}"}
    body = error_body(status, reply.fail_message, reply.fail_code)
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def _error(status: int, message: str) -> web.Response:
    return web.Response(status=status, body=error_body(status, message), content_type="application/json")


def _garbage(streamed: bool) -> web.Response:
    if streamed:
        return web.Response(body=GARBAGE_STREAM, headers=STREAM_HEADERS)
    return web.Response(body=GARBAGE_BODY, content_type="text/html")


async def _write(response: web.StreamResponse, data: bytes, reply: Reply) -> None:
    size = SPLIT_BYTES if reply.split else max(1, len(data))
    for at in range(0, len(data), size):
        await response.write(data[at : at + size])


async def _end_early(ending: Ending, request: web.Request, call: ModelCall) -> None:
    if ending is Ending.STALL:
        await _for_ever()
    call.status, call.cut_at = 200, time.monotonic()
    if ending is Ending.CUT and request.transport:
        request.transport.abort()


async def _for_ever() -> None:
    """Until the client goes away, which cancels the handler."""
    await asyncio.Event().wait()
