from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelUnavailable, explain_model_error
from engine.reasons import Reason, to_plain
from runs.event_types import Delta, EventType, Fact, RunEnded, RunNoted, RunStarted, TaskEnded
from runs.explain import REASON
from runs.web.frames import Feed, salient_argument

RUN = uuid4()
AT = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    seq: int
    type: str
    data: str
    run_id: UUID = RUN
    at: datetime = AT


def fact(seq: int, value: Fact, run_id: UUID = RUN) -> Row:
    return Row(seq, value.type, orjson.dumps(value.payload()).decode(), run_id)


def message(seq: int, **wire: object) -> Row:
    return Row(seq, EventType.MESSAGE, orjson.dumps(wire).decode())


def delta(seq: int, text: str, key: str = "m1") -> Row:
    return fact(seq, Delta(id=key, text=text))


def test_the_first_piece_of_a_reply_is_shown_at_once():
    frames = Feed().take([delta(1, "Hel")], now=10.0)
    assert [(f["type"], f["seq"], f["id"], f["open_html"]) for f in frames] == [("delta", 1, "m1", "<p>Hel</p>\n")]


def test_further_pieces_are_shown_together_and_at_most_five_times_a_second():
    feed = Feed()
    feed.take([delta(1, "a")], now=10.01)
    assert feed.take([delta(2, "b")], now=10.05) == []
    assert feed.take([delta(3, "c")], now=10.10) == []
    assert feed.due is not None
    assert 10.10 < feed.due <= 10.01 + 0.2
    assert feed.flush(now=10.11) == []
    frames = feed.flush(now=feed.due)
    assert [(f["seq"], f["open_html"]) for f in frames] == [(3, "<p>abc</p>\n")]
    assert feed.due is None


def test_subscribers_who_came_at_different_times_are_due_at_the_same_moment():
    early, late = Feed(), Feed()
    early.take([delta(1, "a")], now=10.01)
    late.take([delta(1, "a")], now=10.12)
    for feed, now in ((early, 10.13), (late, 10.14)):
        feed.take([delta(2, "b")], now=now)
    assert early.due == late.due


def test_a_finished_message_takes_the_place_of_what_was_held_back():
    feed = Feed()
    feed.take([delta(1, "a")], now=10.01)
    frames = feed.take([delta(2, "b"), message(3, type="ai", id="m1", content="ab")], now=10.02)
    assert [(f["type"], f["seq"], f.get("html")) for f in frames] == [("message", 3, "<p>ab</p>\n")]
    assert feed.due is None


def test_the_end_of_a_run_first_shows_the_rest_of_its_unfinished_reply():
    feed = Feed()
    feed.take([delta(1, "a")], now=10.01)
    frames = feed.take([delta(2, "b"), fact(3, RunEnded(status="cancelled"))], now=10.02)
    assert [(f["type"], f["seq"]) for f in frames] == [("delta", 2), ("run.ended", 3)]
    assert frames[0]["open_html"] == "<p>ab</p>\n"


def test_a_reply_that_is_written_anew_takes_the_place_of_what_was_shown():
    feed = Feed()
    feed.take([delta(1, "First\n\nsecond")], now=10.01)
    anew = fact(2, Delta(id="m1", text="Other", restarts=True))
    (frame,) = feed.take([anew, delta(3, " words")], now=11.0)
    assert (frame["first_block"], frame["blocks"], frame["open_html"]) == (0, [], "<p>Other words</p>\n")


def test_events_of_other_kinds_are_never_held_back():
    feed = Feed()
    feed.take([delta(1, "a")], now=10.01)
    frames = feed.take([delta(2, "b"), Row(3, "task.step", '{"task":"t","turn":1,"kind":"text"}')], now=10.02)
    assert [f["type"] for f in frames] == ["task.step"]


def test_a_result_comes_as_finished_html():
    (frame,) = Feed().take([fact(1, TaskEnded(task="t", status="success", result="**ok**"))], now=0)
    assert frame["html"] == "<p><strong>ok</strong></p>\n"


def test_a_message_says_who_spoke_and_what_was_called():
    call = {"id": "c1", "name": "read_file", "args": {"limit": 5, "path": "a/b.txt"}}
    bad = {"id": "c2", "name": "bash", "args": '{"command": "ls', "error": "unterminated"}
    (frame,) = Feed().take(
        [message(1, type="ai", id="m", content="", tool_calls=[call], invalid_tool_calls=[bad])], now=0
    )
    assert (frame["type"], frame["role"]) == ("message", "ai")
    assert frame["calls"] == [
        {"id": "c1", "name": "read_file", "argument": "a/b.txt"},
        {"id": "c2", "name": "bash", "argument": ""},
    ]


def test_a_tool_result_is_bounded_and_says_whether_it_failed():
    (frame,) = Feed().take(
        [message(1, type="tool", tool_call_id="c", name="bash", status="error", content="x" * 9_000)], now=0
    )
    assert (frame["role"], frame["call"], frame["tool"], frame["failed"]) == ("tool", "c", "bash", True)
    assert len(frame["text"]) == 2_000


def test_the_words_of_a_person_are_never_html():
    (frame,) = Feed().take([message(1, type="human", id="m", content="<b>&</b>")], now=0)
    assert frame["text"] == "<b>&</b>"
    assert "html" not in frame


@pytest.mark.parametrize("data", ["", "[]", "nonsense", "null", '"text"', "{"])
@pytest.mark.parametrize("kind", [*EventType, "made.up"])
def test_a_row_of_any_kind_with_odd_data_breaks_nothing(kind, data):
    frames = Feed().take([Row(7, str(kind), data)], now=0)
    assert all(frame["seq"] == 7 for frame in frames)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    ["type", "id", "content", "tool_calls", "invalid_tool_calls", "name", "status", "text", "result"]
)


@given(st.sampled_from([*map(str, EventType), "other"]), st.dictionaries(fields, json_values))
def test_a_payload_of_any_shape_becomes_a_frame_that_json_can_carry(kind, payload):
    data = orjson.dumps(payload, option=orjson.OPT_NON_STR_KEYS).decode() if _fits(payload) else "{}"
    feed = Feed()
    frames = [*feed.take([Row(1, kind, data)], now=0), *feed.flush(now=99)]
    orjson.dumps(frames)


def _fits(value: object) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"content": "long text", "path": "notes.md"}, "notes.md"),
        ({"command": "ls -l\n  | wc"}, "ls -l | wc"),
        ({"anything": "first", "other": "second"}, "first"),
        ({"flag": True, "count": 3}, "3"),
        ({}, ""),
        ("not an object", ""),
        (None, ""),
    ],
)
def test_one_argument_stands_for_a_tool_call(arguments, said):
    assert salient_argument(arguments) == said


def test_why_a_run_was_stopped_is_said_in_the_readers_language():
    ended = RunEnded(status="timeout", error_code="timed_out", detail={"limit": 300, "layer": "runs.timeout_seconds"})
    (english,) = Feed().take([fact(1, ended)], now=0)
    (chinese,) = Feed("zh-hans").take([fact(1, ended)], now=0)
    assert english["why"].startswith("Ran longer than 300 s (runs.timeout_seconds)")
    assert chinese["why"].startswith("运行超过了 300 秒（runs.timeout_seconds）")


def test_what_a_lost_worker_was_writing_is_not_shown_again_when_another_continues():
    feed = Feed()
    feed.take([delta(1, "Hel"), delta(2, "lo")], now=10.0)
    feed.take([fact(3, RunStarted(attempt=2, worker="b:2"))], now=10.0)
    assert feed.due is None


def test_what_went_wrong_with_the_model_is_said_in_the_readers_language():
    reason = explain_model_error(
        ModelUnavailable("gpt", Reason("the package %(name)s is not installed", name="x"))
    ).sentence
    ended = RunEnded(
        status="error", error_code="model_unavailable", error=str(reason), detail={REASON: to_plain(reason)}
    )
    (english,) = Feed().take([fact(1, ended)], now=0)
    (chinese,) = Feed("zh-hans").take([fact(1, ended)], now=0)
    assert english["error"] == 'The model "gpt" is not available: the package x is not installed.'
    assert chinese["error"] == '模型 "gpt" 不可用：未安装软件包 x。'
    forged = RunEnded(status="error", error_code="model_unavailable", error="as it was", detail={REASON: {"facts": 1}})
    (as_it_was,) = Feed("zh-hans").take([fact(1, forged)], now=0)
    assert as_it_was["error"] == "as it was"


def test_why_nobody_may_be_called_and_what_was_clamped_is_said_in_the_readers_language():
    row = fact(1, RunNoted(delegation_off="request", clamped={"max_total_subagents": [99, 50]}))
    (frame,) = Feed().take([row], now=0.0)
    assert frame["lines"] == [
        "Delegation is off: the request switched it off (subagent_enabled).",
        "max_total_subagents: 99 was asked for, 50 is what this deployment allows.",
    ]


@pytest.mark.parametrize(
    "noted", [{"delegation_off": []}, {"delegation_off": "new"}, {"clamped": [1]}, {"clamped": {"a": 1}}]
)
def test_a_note_of_an_odd_shape_says_nothing(noted):
    row = Row(1, EventType.RUN_NOTED, orjson.dumps(noted).decode())
    assert Feed().take([row], now=0.0)[0]["lines"] == []
