"""Everything that runs on a thread as one stream, which lasts until its reader leaves or the thread is deleted."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import orjson

from access.keys import Scope
from runs.agent_protocol.access import asked, database
from runs.agent_protocol.bodies import path_id
from runs.agent_protocol.following import COMMENT, SSE_HEADERS, LastingResponse, with_heartbeat
from runs.agent_protocol.position import Position
from runs.agent_protocol.reading import replies_under_way, thread_exists
from runs.agent_protocol.run_request import DEFAULT_MODES
from runs.agent_protocol.sse import END, Frames, frame
from runs.agent_protocol.state import StateSoFar, state_upto
from runs.errors import BadInput, ThreadNotFound
from runs.event_types import EventType
from runs.models import Run, Thread
from runs.relay import relay
from runs.transcript import from_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller
    from runs.agent_protocol.following import Left
    from runs.agent_protocol.sse import Body
    from runs.log import LogRow

# Begin and end of each run; that and what each was created to stream; and the state when a program changes it.
THREAD_MODES: Final = ("lifecycle", "run_modes", "state_update")
_CHANGES: Final = frozenset({EventType.STATE_UPDATED, EventType.THREAD_REWOUND})


async def join_thread_stream(request: Request) -> LastingResponse:
    """Events of all runs of the thread: from now on, or past a Last-Event-ID; one that is none means from the start."""
    query = request.query_params
    modes = _modes([*query.getlist("stream_mode"), *query.getlist("stream_modes")])

    def newest(caller: Caller) -> tuple[UUID, int]:
        thread_id = path_id(request, "thread_id")
        thread = Thread.objects.filter(pk=thread_id, owner_id=caller.owner_id).only("last_seq").first()
        if thread is None:
            raise ThreadNotFound(thread_id)
        return thread_id, thread.last_seq

    thread_id, last = await asked(request, Scope.READ, newest)
    start = Position(last)
    if "last-event-id" in request.headers:
        seen = Position.parse(request.headers["last-event-id"])
        start = Position(min(seen.seq, last), seen.part) if seen else Position(0)
    told = ThreadFrames(start, modes, await database().call(state_upto, thread_id, start.rows_after))

    async def body(left: Left) -> AsyncGenerator[bytes, None]:
        async with aclosing(with_heartbeat(_follow(thread_id, start.rows_after, told), COMMENT, left)) as pieces:
            async for piece in pieces:
                yield piece
                if piece is COMMENT and not await database().call(thread_exists, thread_id):
                    yield frame(END)
                    return

    headers = {**SSE_HEADERS, "Location": f"/threads/{thread_id}/stream"}
    return LastingResponse(body, media_type="text/event-stream; charset=utf-8", headers=headers)


def _modes(wanted: list[str]) -> frozenset[str]:
    for mode in wanted:
        if mode and mode not in THREAD_MODES:
            raise BadInput("stream_mode", f"a thread streams {', '.join(THREAD_MODES)}")
    return frozenset(filter(None, wanted)) or frozenset({"run_modes"})


class ThreadFrames:
    """Turns the rows of a thread into frames, each run's in the modes that it was created with."""

    def __init__(self, start: Position, modes: frozenset[str], state: StateSoFar) -> None:
        self._start, self._modes, self._state = start, modes, state
        self._runs: dict[UUID, _RunFrames] = {}

    def knows(self, run_id: UUID) -> bool:
        return run_id in self._runs

    def learn(self, run_id: UUID, modes: tuple[str, ...], partial: Mapping[str, str]) -> None:
        """A run that the stream has not met yet; `partial` is what it has told before of replies under way."""
        told = modes if "run_modes" in self._modes else ()
        self._runs[run_id] = _RunFrames(run_id, told, self._start, state=self._state, partial=partial)

    def of(self, row: LogRow) -> bytes:
        if row.type == EventType.MESSAGE:
            self._state.add(row.seq, row.data)
        elif row.type == EventType.THREAD_REWOUND:
            self._state.rewind(row.seq, from_json(row.data))
        elif row.type == EventType.STATE_UPDATED:
            self._state.update(from_json(row.data).get("values", {}))
        elif row.type == EventType.GRAPH_PART and (values := from_json(row.data).get("values")) is not None:
            self._state.update(values)
        if row.type in _CHANGES:
            wanted = "state_update" in self._modes
            return frame(("values", self._state.json()), Position(row.seq)) if wanted else b""
        return self._runs[row.run_id].of(row)


class _RunFrames(Frames):
    """The frames of one of several runs: it begins and ends with `metadata`, and the stream goes on behind it."""

    def _keep(self, row: LogRow) -> None:
        """The stream keeps the state for all runs together."""

    def _bodies(self, row: LogRow) -> Iterator[Body]:
        if row.type == EventType.RUN_STARTED:
            attempt = from_json(row.data).get("attempt", 1)
            yield "metadata", orjson.dumps({"run_id": str(row.run_id), "attempt": attempt})
        else:
            yield from super()._bodies(row)

    def _end(self, row: LogRow) -> Iterator[Body]:
        for body in super()._end(row):
            done = ("metadata", orjson.dumps({"status": "run_done", "run_id": str(row.run_id)}))
            yield done if body == END else body


async def _follow(thread_id: UUID, after: int, told: ThreadFrames) -> AsyncGenerator[bytes, None]:
    following: Any = relay().follow(thread_id, after)
    async with aclosing(following) as batches:
        async for rows in batches:
            for run_id in {row.run_id for row in rows}:
                if not told.knows(run_id):
                    told.learn(run_id, *await database().call(_run_so_far, thread_id, run_id, after))
            if piece := b"".join(told.of(row) for row in rows):
                yield piece


def _run_so_far(thread_id: UUID, run_id: UUID, after: int) -> tuple[tuple[str, ...], dict[str, str]]:
    options = Run.objects.filter(pk=run_id).values_list("options", flat=True).first()
    if options is None:  # written by hand, or rolled back since
        return (), {}
    return tuple(options.get("stream_mode", DEFAULT_MODES)), replies_under_way(thread_id, run_id, after)
