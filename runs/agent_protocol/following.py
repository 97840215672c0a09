"""Answers that last as long as a run: joins and streams, kept alive by heartbeats, ended when the client leaves."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import StreamingResponse

from runs import log, services
from runs.agent_protocol.access import database
from runs.agent_protocol.position import Position
from runs.agent_protocol.reading import end_seq, replies_under_way, run_exists
from runs.agent_protocol.run_request import DEFAULT_MODES
from runs.agent_protocol.sse import END, Frames, follow_run, frame
from runs.agent_protocol.state import StateSoFar, state_upto
from runs.errors import RunNotFound
from runs.graphs.asking import OPTION
from runs.graphs.state import values_upto
from runs.statuses import ENDED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from uuid import UUID

    from starlette.types import Receive, Scope, Send

    from runs.models import Run

HEARTBEAT_SECONDS = 5.0
_NEWLINE, COMMENT = b"\n", b": heartbeat\n\n"
Left = asyncio.Future[None]
SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class LastingResponse(StreamingResponse):
    """A body that is told when the client has left, instead of being cancelled in the middle of whatever it does."""

    def __init__(self, body: Callable[[Left], AsyncGenerator[bytes, None]], **options: Any) -> None:
        super().__init__((), **options)
        self._body = body

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        left = asyncio.ensure_future(_left(receive))
        try:
            async with aclosing(self._body(left)) as pieces:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            if not left.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            left.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def place_of(run: Run) -> str:
    """The run's path, without our mount: the SDK puts its own base path before it."""
    return f"/threads/{run.thread_id}/runs/{run.pk}"


def joined(
    run: Run,
    *,
    cancel_on_disconnect: bool = False,
    place: str = "",
    answer: Callable[[UUID, int | None], bytes] | None = None,
) -> LastingResponse:
    """The run's final values when it has ended; newlines until then, which JSON allows, keep the connection open.

    `answer` makes another answer of a run's id and the number of its end, on the database thread. `place`: as in
    `streamed`.
    """

    async def body(left: Left) -> AsyncGenerator[bytes, None]:
        frames = Frames(run.pk, (), Position(run.base_seq))
        async with aclosing(_lasting(run, frames, run.base_seq, _NEWLINE, left, cancel_on_disconnect)) as pieces:
            async for piece in pieces:
                if piece is _NEWLINE:
                    yield piece
        if left.done():
            return
        if answer is not None:
            yield await database().call(_told, answer, run.pk, frames)
        elif frames.error:
            yield orjson.dumps({"__error__": frames.error})
        else:
            # Up to the end: what waited behind this run has had its turn already, and is not of these values.
            values = (await database().call(_state, run, frames.end_seq)).json()
            yield _asking(values, frames.asked) if frames.asked else values

    again = "wait" if place else "join"
    place = place or place_of(run)
    headers = {"Content-Location": place, "Location": f"{place}/{again}"}
    return LastingResponse(body, media_type="application/json", headers=headers)


def _asking(values: bytes, asked: Any) -> bytes:
    """The values of a run that ended with a question, as the reference tells them: beside what is asked."""
    return orjson.dumps({**orjson.loads(values), "__interrupt__": asked})


def _told(answer: Callable[[UUID, int | None], bytes], run_id: UUID, frames: Frames) -> bytes:
    try:
        return answer(run_id, frames.end_seq)
    except RunNotFound as gone:  # deleted while somebody waited for it
        return orjson.dumps({"code": "not_found", "message": str(gone), "detail": str(gone), "metadata": {}})


async def streamed(
    run: Run,
    *,
    modes: tuple[str, ...] = (),
    last_event_id: str = "",
    cancel_on_disconnect: bool = False,
    place: str = "",
) -> LastingResponse:
    """The run's events. From its beginning, or past a Last-Event-ID that this server may have sent.

    Without modes: those of that id, else those the run was created with. `place` is the run's path, if not below its
    thread.
    """
    seen = await _known(run, last_event_id)
    own = modes or (seen.modes if seen else ())
    start = Position(seen.seq, seen.part, own) if seen else Position(run.base_seq, 0, own)
    wanted = own or tuple(run.options.get("stream_mode", DEFAULT_MODES))
    state, partial = await database().call(_so_far, run, wanted, start.rows_after)
    frames = Frames(run.pk, wanted, start, state=state, partial=partial)

    async def body(left: Left) -> AsyncGenerator[bytes, None]:
        if seen is None:
            metadata = b'{"run_id":"%s","attempt":%d}' % (str(run.pk).encode(), max(1, run.attempt))
            yield frame(("metadata", metadata), start)
        async with aclosing(_lasting(run, frames, start.rows_after, COMMENT, left, cancel_on_disconnect)) as pieces:
            async for piece in pieces:
                yield piece

    place = place or place_of(run)
    headers = {**SSE_HEADERS, "Location": f"{place}/stream", "Content-Location": place}
    return LastingResponse(body, media_type="text/event-stream; charset=utf-8", headers=headers)


async def _known(run: Run, last_event_id: str) -> Position | None:
    """The position an id stands for; None, which means from the beginning, for one that cannot be of this run."""
    position = Position.parse(last_event_id)
    if position is None or position.seq < run.base_seq:
        return None
    newest = (await database().call(log.last_seqs, [run.thread_id])).get(run.thread_id, 0)
    return position if position.seq <= newest else None


def _state(run: Run, seq: int | None) -> StateSoFar:
    """The state after event number `seq`; a graph's has more than messages."""
    state = state_upto(run.thread_id, seq)
    if OPTION in run.options:
        state.update(values_upto(run.thread_id, seq))
    return state


def _so_far(run: Run, modes: tuple[str, ...], after: int) -> tuple[StateSoFar, dict[str, str]]:
    """What a stream that begins past `after` has to know: the transcript, and the replies that are half told."""
    state = _state(run, after) if "values" in modes else StateSoFar()
    resumed = after > run.base_seq and ("messages" in modes or "messages-tuple" in modes)
    return state, replies_under_way(run.thread_id, run.pk, after) if resumed else {}


async def _lasting(
    run: Run, frames: Frames, after: int, beat: bytes, left: Left, cancel_on_disconnect: bool
) -> AsyncGenerator[bytes, None]:
    """Frames until the run has ended or the client has left, and `beat` when nothing came for HEARTBEAT_SECONDS."""
    if run.status in ENDED:
        ended_at = await database().call(end_seq, run.pk, run.thread_id)
        if ended_at is None or after >= ended_at:
            yield frame(END)
            return
    try:
        async with aclosing(with_heartbeat(follow_run(run.thread_id, after, frames), beat, left)) as pieces:
            async for piece in pieces:
                yield piece
                # A thread that was deleted says nothing any more, not even that its run has ended.
                if piece is beat and not await database().call(run_exists, run.pk):
                    yield frames.gone()
                    return
    finally:
        if cancel_on_disconnect and not frames.ended:
            # This request is over, perhaps being cancelled: what it asks for must outlive it.
            _outliving(_cancel_abandoned(run))


async def with_heartbeat(pieces: AsyncGenerator[bytes, None], beat: bytes, left: Left) -> AsyncGenerator[bytes, None]:
    upcoming: asyncio.Future[bytes | None] | None = None
    try:
        while not left.done():
            upcoming = upcoming or asyncio.ensure_future(anext(pieces, None))
            await asyncio.wait((upcoming, left), timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if upcoming.done():
                piece, upcoming = upcoming.result(), None
                if piece is None:
                    return
                yield piece
            elif not left.done():
                yield beat
    finally:
        if upcoming is not None:
            upcoming.cancel()  # which ends `pieces` too: it cannot be closed while it is being waited for
        else:
            await pieces.aclose()


_abandoned: set[asyncio.Task[None]] = set()


def _outliving(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    _abandoned.add(task)
    task.add_done_callback(_abandoned.discard)


async def _cancel_abandoned(run: Run) -> None:
    await database().call(lambda: services.cancel_run(run_id=run.pk, by="disconnect"))
