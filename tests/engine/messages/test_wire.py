from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from engine.wire import WireError, from_wire, to_wire

words = st.text(max_size=20)
ids = st.text(min_size=1, max_size=10)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, json_values, max_size=3)
contents = words | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": words}), min_size=1, max_size=2)
usages = st.none() | st.builds(
    lambda i, o: {"input_tokens": i, "output_tokens": o, "total_tokens": i + o}, st.integers(0, 9), st.integers(0, 9)
)
calls = st.lists(
    st.builds(lambda i, n, a: {"id": i, "name": n, "args": a, "type": "tool_call"}, ids, ids, objects), max_size=2
)
messages = st.one_of(
    st.builds(HumanMessage, content=contents, id=ids),
    st.builds(SystemMessage, content=words, id=ids),
    st.builds(AIMessage, content=contents, id=ids, tool_calls=calls, usage_metadata=usages),
    st.builds(
        ToolMessage,
        content=contents,
        id=ids,
        tool_call_id=ids,
        name=ids,
        status=st.sampled_from(["success", "error"]),
        artifact=st.none() | objects,
    ),
)


@given(messages)
def test_what_is_stored_reads_back_as_the_same_message(message):
    wire = to_wire(message)
    stored = json.loads(json.dumps(wire, allow_nan=False))
    assert type(from_wire(stored)) is type(message)
    assert to_wire(from_wire(stored)) == stored == wire


@given(messages)
def test_what_is_stored_can_be_encoded_and_holds_no_nul(message):
    text = json.dumps(to_wire(message), ensure_ascii=False, allow_nan=False)
    text.encode()
    assert "\\u0000" not in text.replace("\\\\", "")


def test_reasoning_blocks_survive_and_second_copies_of_calls_do_not():
    blocks = [{"type": "reasoning", "reasoning": "hm", "extras": {"signature": "s"}}, {"type": "text", "text": "yes"}]
    kwargs = {"reasoning_content": "hm", "tool_calls": [{"id": "raw"}]}
    read = from_wire(to_wire(AIMessage(content=blocks, id="1", additional_kwargs=kwargs)))
    assert read.content == blocks
    assert read.additional_kwargs == {"reasoning_content": "hm"}


def test_response_metadata_is_bounded_to_what_is_needed_later():
    metadata = {"finish_reason": "stop", "model_name": "m" * 1000, "logprobs": {"content": [1] * 1000}, "body": "all"}
    wire = to_wire(AIMessage(content="x", response_metadata=metadata))
    assert set(wire["response_metadata"]) == {"finish_reason", "model_name"}
    assert len(wire["response_metadata"]["model_name"]) <= 200


def test_what_json_cannot_say_becomes_text():
    wire = to_wire(ToolMessage("x", tool_call_id="c", artifact={"raw": b"\xff", "nan": float("nan"), ("a",): 1}))
    assert wire["artifact"] == {"raw": "b'\\xff'", "nan": None}


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"type": "function"},
        {"type": ["ai"]},
        {"type": "ai", "tool_calls": 5},
        {"type": "ai", "tool_calls": [5]},
        {"type": "ai", "tool_calls": [{"id": "a"}]},
        {"type": "human", "content": 5},
        {"type": "tool", "content": "x", "tool_call_id": "c", "status": "odd"},
        {"type": "ai", "content": "x", "response_metadata": 3},
    ],
)
def test_a_row_of_another_shape_is_refused_with_one_kind_of_error(row):
    with pytest.raises(WireError):
        from_wire(row)


def test_a_message_of_another_kind_is_never_stored():
    with pytest.raises(WireError, match="function"):
        to_wire(FunctionMessage(content="x", name="f"))
