"""A run's log rows as the server-sent events of the wire. Ids are the thread's sequence numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from runs.event_types import EventType
from runs.relay import relay
from runs.statuses import RunStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from uuid import UUID

    from runs.log import LogRow

END = b"event: end\ndata: null\n\n"
_FAILED = frozenset({RunStatus.ERROR, RunStatus.TIMEOUT})


def frame(name: str, body: bytes, seq: int | None = None) -> bytes:
    number = b"id: %d\n" % seq if seq is not None else b""
    return b"event: %s\ndata: %s\n%s\n" % (name.encode(), body, number)


class Frames:
    """Turns the rows of one run into frames of the wanted modes. Keeps what it needs of the replies under way."""

    def __init__(self, run_id: UUID, modes: Sequence[str], state: Sequence[str] = ()) -> None:
        self._run_id = run_id
        self._modes = frozenset(modes)
        self._meta = orjson.dumps({"run_id": str(run_id)})
        self._state = list(state)  # the thread's messages so far, as JSON; only kept for `values`
        self._partial: dict[str, str] = {}
        self.ended = False
        self.error: dict[str, str] | None = None  # of a run that failed

    def of(self, row: LogRow) -> bytes:
        """The frames of a row, concatenated; rows of other runs only complete the state."""
        own = row.run_id == self._run_id
        if row.type == EventType.MESSAGE:
            self._state.append(row.data)
        if not own:
            return b""
        if row.type == EventType.DELTA:
            return b"".join(self._delta(row))
        if row.type == EventType.MESSAGE:
            return b"".join(self._message(row))
        if row.type == EventType.RUN_ENDED:
            return b"".join(self._end(row))
        return b""

    def _delta(self, row: LogRow) -> Iterator[bytes]:
        piece = orjson.loads(row.data)
        self._partial[piece["id"]] = self._partial.get(piece["id"], "") + piece["text"]
        if "messages-tuple" in self._modes:
            chunk = {"type": "AIMessageChunk", "id": piece["id"], "content": piece["text"]}
            yield frame("messages", self._tuple(orjson.dumps(chunk)), row.seq)
        if "messages" in self._modes:
            whole = {"type": "ai", "id": piece["id"], "content": self._partial[piece["id"]]}
            yield frame("messages/partial", orjson.dumps([whole]), row.seq)

    def _message(self, row: LogRow) -> Iterator[bytes]:
        raw, message = row.data.encode(), orjson.loads(row.data)
        streamed = self._partial.pop(message.get("id", ""), None) is not None
        if message["type"] != "human":
            if "messages-tuple" in self._modes and (chunk := _chunk(message, streamed=streamed)):
                yield frame("messages", self._tuple(orjson.dumps(chunk)), row.seq)
            if "messages" in self._modes:
                yield frame("messages/complete", b"[" + raw + b"]", row.seq)
            if "updates" in self._modes:
                node = b"tools" if message["type"] == "tool" else b"model"
                yield frame("updates", b'{"%s":{"messages":[%s]}}' % (node, raw), row.seq)
        if "values" in self._modes:
            yield frame("values", b'{"messages":[' + ",".join(self._state).encode() + b"]}", row.seq)

    def _end(self, row: LogRow) -> Iterator[bytes]:
        self.ended = True
        ending = orjson.loads(row.data)
        if ending.get("status") in _FAILED:
            name = ending.get("error_code") or ending["status"]
            self.error = {"error": name, "message": ending.get("error") or ending.get("why", "")}
            yield frame("error", orjson.dumps(self.error), row.seq)
        yield END

    def _tuple(self, chunk: bytes) -> bytes:
        return b"[" + chunk + b"," + self._meta + b"]"


def _chunk(message: dict[str, Any], *, streamed: bool) -> dict[str, Any] | None:
    """What a reader of pieces still lacks of a whole message: its calls, or everything when nothing was streamed."""
    if message["type"] != "ai":
        return message
    calls = message.get("tool_calls")
    if streamed and not calls:
        return None
    return {**message, "type": "AIMessageChunk", "content": "" if streamed else message.get("content", "")}


async def follow_run(thread_id: UUID, after: int, frames: Frames) -> AsyncIterator[bytes]:
    """Frames from `after` until the run has ended. Empty pieces keep the caller's heartbeat informed."""
    async for rows in relay().follow(thread_id, after):
        pieces = []
        for row in rows:
            pieces.append(frames.of(row))
            if frames.ended:
                break
        if piece := b"".join(pieces):
            yield piece
        if frames.ended:
            return
