"""The pure part of streams: rows in, frames out; ids of events."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import orjson
from hypothesis import given
from hypothesis import strategies as st

from runs.agent_protocol.position import Position
from runs.agent_protocol.run_request import STREAM_MODES
from runs.agent_protocol.sse import Frames
from runs.agent_protocol.state import StateSoFar
from runs.event_types import EventType
from runs.log import LogRow
from tests.runs.wire.callers import events_of

RUN, OTHER = UUID(int=1), UUID(int=2)
AT = datetime(2026, 3, 1, tzinfo=UTC)
positions = st.builds(
    Position,
    st.integers(0, 10**18 - 1),
    st.integers(0, 99),
    st.lists(st.sampled_from(STREAM_MODES), unique=True).map(tuple),
)


def row(seq: int, kind: EventType, run_id: UUID = RUN, **fields: object) -> LogRow:
    return LogRow(seq, run_id, kind, AT, orjson.dumps(fields).decode())


def reply(seq: int, content: object, **fields: object) -> LogRow:
    return row(seq, EventType.MESSAGE, type="ai", id="m", content=content, **fields)


def words(frames: Frames, *rows: LogRow) -> list[str]:
    events = events_of("".join(frames.of(one).decode() for one in rows))
    return [event.data[0]["content"] for event in events if event.name == "messages"]


@given(positions)
def test_an_id_means_the_position_it_was_made_of(position: Position):
    assert Position.parse(str(position)) == position


@given(st.text())
def test_no_text_whatever_breaks_the_reading_of_an_id(text: str):
    parsed = Position.parse(text)
    assert parsed is None or parsed.rows_after >= -1


@given(st.lists(st.text(min_size=1, max_size=5), max_size=6), st.integers(0, 6))
def test_pieces_and_the_rest_of_the_message_make_up_the_reply_whatever_was_stored_as_pieces(
    chunks: list[str], stored: int
):
    rows = [row(n, EventType.DELTA, id="m", text=text) for n, text in enumerate(chunks[:stored], 1)]
    frames = Frames(RUN, ["messages-tuple"], Position(0))
    assert "".join(words(frames, *rows, reply(9, "".join(chunks)))) == "".join(chunks)


def test_a_reply_that_was_begun_before_the_stream_is_not_told_twice():
    frames = Frames(RUN, ["messages-tuple"], Position(4), partial={"m": "one two "})
    assert words(frames, row(5, EventType.DELTA, id="m", text="three"), reply(6, "one two three four")) == [
        "three",
        " four",
    ]


def test_content_blocks_are_not_repeated_after_their_pieces():
    frames = Frames(RUN, ["messages-tuple"], Position(0))
    blocks = [{"type": "text", "text": "one"}]
    assert words(frames, row(1, EventType.DELTA, id="m", text="one"), reply(2, blocks)) == ["one"]


def test_rows_of_other_runs_say_nothing_but_are_in_the_state():
    frames = Frames(RUN, ["values"], Position(0))
    other = row(1, EventType.MESSAGE, OTHER, type="human", id="h", content="hello")
    assert frames.of(other) == b""
    assert frames.of(row(2, EventType.RUN_ENDED, OTHER, status="success")) == b""
    assert not frames.ended
    (event,) = events_of(frames.of(reply(3, "hi")).decode())
    assert [message["content"] for message in event.data["messages"]] == ["hello", "hi"]


def test_a_reply_that_is_written_anew_begins_anew_for_readers_of_the_text_so_far():
    frames = Frames(RUN, ["messages"], Position(0))
    rows = [
        row(1, EventType.DELTA, id="m", text="one "),
        row(2, EventType.DELTA, id="m", text="An", restarts=True),
        row(3, EventType.DELTA, id="m", text="other"),
        reply(4, "Another"),
    ]
    events = events_of("".join(frames.of(one).decode() for one in rows))
    assert [event.data[0]["content"] for event in events] == ["one ", "An", "Another", "Another"]
    assert [event.name for event in events] == ["messages/partial"] * 3 + ["messages/complete"]


def test_readers_of_chunks_who_can_give_none_back_get_a_reply_that_was_written_anew_as_a_whole():
    frames = Frames(RUN, ["messages-tuple"], Position(0))
    rows = [
        row(1, EventType.DELTA, id="m", text="one "),
        row(2, EventType.DELTA, id="m", text="Another", restarts=True),
        reply(3, "Another."),
    ]
    events = events_of("".join(frames.of(one).decode() for one in rows))
    assert [(event.data[0]["type"], event.data[0]["content"]) for event in events] == [
        ("AIMessageChunk", "one "),
        ("ai", "Another."),
    ]


def test_a_summary_is_no_step_of_the_agent():
    frames = Frames(RUN, ["updates", "messages", "messages-tuple"], Position(0))
    assert frames.of(row(1, EventType.MESSAGE, type="system", name="summary", id="s", content="S")) == b""


def test_values_follow_the_line_of_a_thread_that_goes_back_while_they_are_streamed():
    state = StateSoFar([(1, '{"content":"a"}'), (2, '{"content":"b"}')])
    frames = Frames(RUN, ["values"], Position(2), state=state)
    rows = [
        row(3, EventType.THREAD_REWOUND, to=1, line=[[1, 1]], values={"topic": "x"}),
        reply(4, "c"),
        row(5, EventType.THREAD_REWOUND, to=2, line=[[1, 2]]),
        reply(6, "d"),
    ]
    events = events_of("".join(frames.of(one).decode() for one in rows))
    told = [[message["content"] for message in event.data["messages"]] for event in events]
    assert told == [["a", "c"], ["a", "b", "d"]]
    assert [event.data.get("topic") for event in events] == ["x", None]
