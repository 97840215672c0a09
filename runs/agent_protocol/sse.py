"""A run's log rows as the server-sent events of the wire. An event's id is the place in the log; see Position."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from runs.agent_protocol.state import StateSoFar
from runs.event_types import EventType
from runs.relay import relay
from runs.statuses import RunStatus
from runs.transcript import from_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
    from uuid import UUID

    from runs.agent_protocol.position import Position
    from runs.log import LogRow

END = ("end", b"null")
_FAILED = frozenset({RunStatus.ERROR, RunStatus.TIMEOUT})
_OF_REPLIES = frozenset({"messages", "messages-tuple"})

Body = tuple[str, bytes]  # an event's name and its JSON


def frame(body: Body, position: Position | None = None) -> bytes:
    number = b"id: %s\n" % str(position).encode() if position is not None else b""
    return b"event: %s\ndata: %s\n%s\n" % (body[0].encode(), body[1], number)


class Frames:
    """Turns the rows of one run into frames of the wanted modes. Keeps what it needs of the replies under way."""

    def __init__(
        self,
        run_id: UUID,
        modes: Sequence[str],
        start: Position,
        *,
        state: StateSoFar | None = None,
        partial: Mapping[str, str] | None = None,
    ) -> None:
        self._run_id = run_id
        self._modes = frozenset(modes)
        self._start = start
        self._meta = orjson.dumps({"run_id": str(run_id)})
        self._state = state or StateSoFar()  # only kept for `values`
        self._partial = dict(partial or {})  # the text so far of replies under way, by message id
        self._given_up: set[str] = (
            set()
        )  # replies written anew: readers of chunks cannot take any back, so get the whole
        self._of_graph = False
        self.end_seq: int | None = None
        self.error: dict[str, str] | None = None  # of a run that failed
        self.asked: Any = None  # what a graph asks of somebody, on whom the run now waits

    @property
    def ended(self) -> bool:
        return self.end_seq is not None

    def of(self, row: LogRow) -> bytes:
        """The frames of a row, concatenated; rows of other runs only complete the state."""
        if "values" in self._modes:
            self._keep(row)
        if row.run_id != self._run_id:
            return b""
        bodies = list(self._bodies(row))
        seen = self._start.part if row.seq == self._start.seq else 0
        # Only the last one says that the row is done: a connection may break between two of them.
        places = [*range(1, len(bodies)), 0]
        return b"".join(
            frame(body, replace(self._start, seq=row.seq, part=place))
            for body, place in zip(bodies[seen:], places[seen:], strict=False)
        )

    def _keep(self, row: LogRow) -> None:
        if row.type == EventType.MESSAGE:
            self._state.add(row.seq, row.data)
        elif row.type == EventType.THREAD_REWOUND:
            self._state.rewind(row.seq, from_json(row.data))
        elif row.type == EventType.GRAPH_PART and (values := from_json(row.data).get("values")) is not None:
            self._state.update(values)
        elif row.type == EventType.STATE_UPDATED:
            self._state.update(from_json(row.data).get("values", {}))

    def gone(self) -> bytes:
        """The frames of a run that was deleted while somebody followed it."""
        self.end_seq = self._start.seq
        self.error = {"error": "run_deleted", "message": "The run was deleted."}
        return frame(("error", orjson.dumps(self.error))) + frame(END)

    def _bodies(self, row: LogRow) -> Iterator[Body]:
        if row.type == EventType.RUN_ENDED:
            yield from self._end(row)
        elif row.type == EventType.DELTA and self._modes & _OF_REPLIES:
            yield from self._delta(row)
        elif row.type == EventType.MESSAGE and self._modes:
            yield from self._message(row)
        elif row.type == EventType.GRAPH_PART:
            yield from self._part(from_json(row.data))

    def _part(self, part: Mapping[str, Any]) -> Iterator[Body]:
        """A part of a graph's stream. From the first one on its messages are no steps of their own."""
        self._of_graph = True
        mode, ns = str(part.get("mode", "")), str(part.get("ns", ""))
        if mode == "values" and not ns:
            if "values" in self._modes:
                yield "values", self._state.json()
        elif mode == "interrupts":
            self.asked = part.get("data")
            if self._modes & {"values", "updates"}:
                yield "updates", orjson.dumps({"__interrupt__": part.get("data")})
        elif mode in self._modes or (mode == "messages" and "messages-tuple" in self._modes):
            yield f"{mode}|{ns}" if ns else mode, orjson.dumps(part.get("data"))

    def _delta(self, row: LogRow) -> Iterator[Body]:
        piece = from_json(row.data)
        if piece.get("restarts") and self._partial.pop(piece["id"], ""):
            self._given_up.add(piece["id"])
        text = self._partial[piece["id"]] = self._partial.get(piece["id"], "") + piece["text"]
        if "messages-tuple" in self._modes and piece["id"] not in self._given_up:
            chunk = {"type": "AIMessageChunk", "id": piece["id"], "content": piece["text"]}
            yield "messages", self._tuple(chunk)
        if "messages" in self._modes:
            yield "messages/partial", orjson.dumps([{"type": "ai", "id": piece["id"], "content": text}])

    def _message(self, row: LogRow) -> Iterator[Body]:
        raw = row.data.encode()
        if self._modes != {"values"}:
            message = from_json(raw)
            if message["type"] not in {"human", "system"}:  # what somebody said, and summaries: no step of the agent
                yield from self._step(message, raw)
        if "values" in self._modes and not self._of_graph:
            yield "values", self._state.json()

    def _step(self, message: dict[str, Any], raw: bytes) -> Iterator[Body]:
        streamed = self._partial.pop(message.get("id", ""), "")
        whole = message.get("id", "") in self._given_up
        if "messages-tuple" in self._modes and (chunk := message if whole else _chunk(message, streamed)):
            yield "messages", self._tuple(chunk)
        if "messages" in self._modes:
            if message["type"] == "ai" and message.get("content") != streamed:
                yield "messages/partial", b"[" + raw + b"]"  # for readers of pieces: the last ones came in none
            yield "messages/complete", b"[" + raw + b"]"
        if "updates" in self._modes and not self._of_graph:
            node = b"tools" if message["type"] == "tool" else b"model"
            yield "updates", b'{"%s":{"messages":[%s]}}' % (node, raw)

    def _end(self, row: LogRow) -> Iterator[Body]:
        self.end_seq = row.seq
        ending = from_json(row.data)
        if ending.get("status") in _FAILED:
            name = ending.get("error_code") or ending["status"]
            self.error = {"error": name, "message": ending.get("error") or ending.get("why", "")}
            yield "error", orjson.dumps(self.error)
        yield END

    def _tuple(self, chunk: dict[str, Any]) -> bytes:
        return b"[" + orjson.dumps(chunk) + b"," + self._meta + b"]"


def _chunk(message: dict[str, Any], streamed: str) -> dict[str, Any] | None:
    """What a reader of pieces still lacks of a whole message: its calls, and the words that came in no piece."""
    if message["type"] != "ai":
        return message
    content = message.get("content", "")
    if streamed:
        content = content[len(streamed) :] if isinstance(content, str) and content.startswith(streamed) else ""
        if not content and not message.get("tool_calls"):
            return None
    return {**message, "type": "AIMessageChunk", "content": content}


async def follow_run(thread_id: UUID, after: int, frames: Frames) -> AsyncGenerator[bytes, None]:
    """Frames of the rows past `after` until the run has ended."""
    following: Any = relay().follow(thread_id, after)
    async with aclosing(following) as batches:
        async for rows in batches:
            pieces = []
            for row in rows:
                pieces.append(frames.of(row))
                if frames.ended:
                    break
            if piece := b"".join(pieces):
                yield piece
            if frames.ended:
                return
