"""The endpoints. Thin: read the request, call a verb, shape the answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson
from django.db import IntegrityError
from starlette.responses import Response, StreamingResponse

from runs import services
from runs.agent_protocol.access import caller_of, database
from runs.agent_protocol.bodies import a_choice, an_id, an_object, json_body, path_id, run_request, stream_modes
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.reading import (
    end_seq,
    find_run,
    list_runs,
    messages_upto,
    thread_answer,
    thread_exists,
)
from runs.agent_protocol.shapes import json_response, run_object, thread_object, values_object
from runs.agent_protocol.sse import END, Frames, follow_run, frame
from runs.api_keys import Scope
from runs.errors import BadInput, ThreadExists
from runs.lifecycle import OpenThread
from runs.models import Run, new_id
from runs.services import MultitaskStrategy
from runs.statuses import ENDED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from uuid import UUID

    from starlette.requests import Request

    from runs.agent_protocol.bodies import RunRequest
    from runs.api_keys import Caller

HEARTBEAT_SECONDS = 5.0
_NEWLINE, _COMMENT = b"\n", b": heartbeat\n\n"
_SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def ok(_request: Request) -> Response:
    return json_response(b'{"ok":true}')


async def create_thread(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    wanted = an_id(body["thread_id"], "thread_id") if body.get("thread_id") is not None else None
    if_exists = a_choice(body, "if_exists", ("raise", "do_nothing"), "raise")
    verb = OpenThread(owner_id=caller.owner_id, thread_id=wanted or new_id(), metadata=an_object(body, "metadata"))
    try:
        thread = await database().write(verb)
    except IntegrityError:
        if if_exists == "raise" or wanted is None:
            raise ThreadExists(verb.thread_id) from None
        return json_response(await database().call(thread_answer, wanted, caller.owner_id))
    return json_response(thread_object(thread, None))


async def get_thread(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    return json_response(await database().call(thread_answer, path_id(request, "thread_id"), caller.owner_id))


async def create_run(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    run = await _start(caller, path_id(request, "thread_id"), run_request(await json_body(request)))
    return json_response(run_object(run), headers=_places(run))


async def wait_run(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    wanted = run_request(await json_body(request))
    run = await _start(caller, path_id(request, "thread_id"), wanted)
    return _joined(request, run, cancel_on_disconnect=wanted.cancel_on_disconnect)


async def stream_run(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    wanted = run_request(await json_body(request))
    run = await _start(caller, path_id(request, "thread_id"), wanted)
    return await _streamed(run, wanted.modes, run.base_seq, cancel_on_disconnect=wanted.cancel_on_disconnect)


async def get_runs(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    limit, offset = (_count(request, name, default) for name, default in (("limit", 10), ("offset", 0)))
    thread_id = path_id(request, "thread_id")
    runs = await database().call(
        list_runs, thread_id, caller.owner_id, request.query_params.get("status"), limit, offset
    )
    return json_response([run_object(run) for run in runs])


async def get_run(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    return json_response(run_object(await _run(request, caller)))


async def join_run(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    return _joined(request, await _run(request, caller), cancel_on_disconnect=False)


async def join_stream(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    run = await _run(request, caller)
    modes = stream_modes(request.query_params.getlist("stream_mode") or None)
    cancel = request.query_params.get("cancel_on_disconnect", "").lower() in {"1", "true"}
    last = request.headers.get("last-event-id", "")
    after = max(run.base_seq, int(last)) if last.isascii() and last.isdigit() and len(last) < 19 else run.base_seq
    return await _streamed(run, modes, after, cancel_on_disconnect=cancel)


async def cancel_run(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    run = await _run(request, caller)
    if request.query_params.get("action", "interrupt") != "interrupt":
        raise BadInput("action", "this server supports only interrupt")
    if not await database().call(lambda: services.cancel_run(run_id=run.pk, by=caller.username)):
        raise Refused(404, "already_ended", f"run {run.pk} has already ended")
    if request.query_params.get("wait", "").lower() in {"1", "true"}:
        return _joined(request, run, cancel_on_disconnect=False)
    return Response(status_code=202)


# --- shared ---------------------------------------------------------------------------------------------------------
async def _run(request: Request, caller: Caller) -> Run:
    return await database().call(find_run, path_id(request, "thread_id"), path_id(request, "run_id"), caller.owner_id)


async def _start(caller: Caller, thread_id: UUID, wanted: RunRequest) -> Run:
    start = services.start_verb(
        thread_id=thread_id,
        owner_id=caller.owner_id,
        messages=wanted.messages,
        agent=wanted.agent,
        options=wanted.options,
        multitask=wanted.multitask,
    )
    if wanted.create_thread and not await database().call(thread_exists, thread_id):
        await _create_if_missing(caller, thread_id)
    run: Run = await database().write(start)
    if wanted.multitask == MultitaskStrategy.INTERRUPT:
        for verb in await database().call(services.interrupts, thread_id):
            await database().write(verb)
    return run


async def _create_if_missing(caller: Caller, thread_id: UUID) -> None:
    try:
        await database().write(OpenThread(owner_id=caller.owner_id, thread_id=thread_id))
    except IntegrityError:
        return  # made meanwhile, or somebody else's: the start says which


def _places(run: Run) -> dict[str, str]:
    return {"Content-Location": f"/threads/{run.thread_id}/runs/{run.pk}"}


def _count(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise BadInput(name, "expected a whole number")
    return min(int(text), 1000) if name == "limit" else int(text)


def _joined(request: Request, run: Run, *, cancel_on_disconnect: bool) -> Response:
    """The final values when the run has ended; newlines until then, which JSON allows, keep the connection open."""

    async def body() -> AsyncIterator[bytes]:
        frames = Frames(run.pk, ())
        async for piece in _followed(run, frames, run.base_seq, _NEWLINE, cancel_on_disconnect):
            if piece is _NEWLINE:
                yield piece
        yield orjson.dumps({"__error__": frames.error}) if frames.error else await _values(run.thread_id)

    headers = {**_places(run), "Location": f"/threads/{run.thread_id}/runs/{run.pk}/join"}
    return StreamingResponse(body(), media_type="application/json", headers=headers)


async def _streamed(run: Run, modes: tuple[str, ...], after: int, *, cancel_on_disconnect: bool) -> Response:
    state = await database().call(messages_upto, run.thread_id, after) if "values" in modes else []

    async def body() -> AsyncIterator[bytes]:
        yield frame("metadata", b'{"run_id":"%s","attempt":%d}' % (str(run.pk).encode(), max(1, run.attempt)))
        async for piece in _followed(run, Frames(run.pk, modes, state), after, _COMMENT, cancel_on_disconnect):
            yield piece

    place = f"/threads/{run.thread_id}/runs/{run.pk}"
    headers = {**_SSE_HEADERS, "Location": f"{place}/stream", "Content-Location": place}
    return StreamingResponse(body(), media_type="text/event-stream; charset=utf-8", headers=headers)


async def _followed(
    run: Run, frames: Frames, after: int, beat: bytes, cancel_on_disconnect: bool
) -> AsyncIterator[bytes]:
    """Frames until the run has ended, and `beat` whenever nothing came for HEARTBEAT_SECONDS."""
    if run.status in ENDED:
        ended_at = await database().call(end_seq, run.pk, run.thread_id)
        if ended_at is not None and after >= ended_at:
            yield END
            return
    upcoming: asyncio.Future[bytes | None] | None = None
    finished = False
    try:
        async with aclosing(follow_run(run.thread_id, after, frames)) as pieces:
            while True:
                upcoming = upcoming or asyncio.ensure_future(anext(pieces, None))
                if not (await asyncio.wait([upcoming], timeout=HEARTBEAT_SECONDS))[0]:
                    yield beat
                    continue
                piece, upcoming = upcoming.result(), None
                if piece is None:
                    finished = True
                    return
                yield piece
    finally:
        if upcoming is not None:
            upcoming.cancel()
        if cancel_on_disconnect and not finished:
            # The connection is gone and this task is being cancelled: the request to stop must outlive it.
            _outliving(_cancel_abandoned(run.pk))


async def _values(thread_id: UUID) -> bytes:
    return values_object(await database().call(messages_upto, thread_id))


_abandoned: set[asyncio.Task[None]] = set()


def _outliving(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    _abandoned.add(task)
    task.add_done_callback(_abandoned.discard)


async def _cancel_abandoned(run_id: UUID) -> None:
    await database().call(lambda: services.cancel_run(run_id=run_id, by="disconnect"))
