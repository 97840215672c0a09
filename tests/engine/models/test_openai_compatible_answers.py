"""What the thin chat model makes of every kind of answer, good and bad."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import AIMessageChunk

from engine.errors import StreamCut, explain_model_error
from engine.models.openai_compatible_events import EventSplitter
from engine.models.openai_compatible_wire import ServerRefusal, UnreadableAnswer
from tests.engine.fakes import echo
from tests.engine.models.thin import (
    FINISH,
    HELLO,
    KEY,
    answering,
    chunks_of,
    delta,
    joined,
    raw,
    read_back,
    stream,
    thin,
)
from tests.scripted_model import Reply, ToolCall

CALL = ToolCall(name="echo", arguments={"text": "a"})


async def test_the_events_of_one_read_are_one_chunk(scripted_model):
    scripted_model.replies([Reply(tokens=50)])
    async with thin(scripted_model) as chat:
        (chunk,) = await chunks_of(chat)
    assert chunk.content.split() == [f"t{number}" for number in range(50)]
    assert chunk.response_metadata["finish_reason"] == "stop"
    assert chunk.usage_metadata["output_tokens"] == 50


async def test_a_piece_is_given_as_soon_as_it_is_there(scripted_model):
    scripted_model.replies([Reply(tokens=4, gate="more", gate_after=2)])
    async with thin(scripted_model) as chat:
        pieces = chat.astream(HELLO)
        early = ""
        while "t1" not in early:
            early += (await anext(pieces)).content
        scripted_model.open_gate("more")
        assert early + "".join([one.content async for one in pieces]) == "t0 t1 t2 t3 "


async def test_reasoning_and_refusal_are_kept_beside_the_text():
    body = stream(
        delta(reasoning_content="Let me "), delta(reasoning="think."), delta(refusal="No", content=None), FINISH
    )
    message = await read_back(body)
    assert message.additional_kwargs == {"reasoning_content": "Let me think.", "refusal": "No"}


async def test_the_done_mark_may_be_missing_once_the_finish_is_there():
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    message = await read_back(stream(delta(content="hi"), FINISH, usage, done=False))
    assert (message.content, message.response_metadata["finish_reason"]) == ("hi", "stop")
    assert message.usage_metadata["total_tokens"] == 5


async def test_the_last_event_may_lack_its_blank_line():
    message = await read_back(stream(delta(content="hi"), FINISH, done=False).rstrip(b"\n"))
    assert message.response_metadata["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "body",
    [
        stream(delta(content="hi"), done=False),
        stream(delta(content="hi")),
        stream(done=True),
        stream(delta(content="hi"), done=False) + b'data: {"choices": [{"delta": {"cont',
        b"",
    ],
    ids=["no finish", "done without finish", "nothing but done", "half an event", "empty body"],
)
async def test_an_answer_without_a_finish_is_cut(body):
    with pytest.raises(StreamCut):
        await read_back(body)


@pytest.mark.parametrize(
    "event",
    [
        b"data: {oops",
        b"data: [1]",
        b"data: \xff\xfe",
        {"choices": {"0": 1}},
        {"choices": [7]},
        {"choices": [{"delta": "text"}]},
        delta(content=7),
        delta(tool_calls={"index": 0}),
        delta(tool_calls=[{"index": 0, "function": "echo"}]),
        b"data: " + b"[" * 100_000,
    ],
)
async def test_an_event_that_breaks_the_protocol_is_a_model_failure(event):
    with pytest.raises(UnreadableAnswer) as caught:
        await read_back(stream(delta(content="hi"), event, FINISH))
    assert explain_model_error(caught.value).code == "model_unreadable"


async def test_a_page_instead_of_a_stream_is_a_model_failure():
    async with answering(raw(b"<html>welcome</html>", content_type="text/html")) as chat:
        for asking in (joined(chat), chat.ainvoke(HELLO)):
            with pytest.raises(UnreadableAnswer):
                await asking


async def test_a_whole_answer_to_a_streamed_request_is_read_too():
    answer = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "model": "m"}
    async with answering(raw(json.dumps(answer).encode(), content_type="application/json")) as chat:
        assert (await joined(chat)).content == "hi"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"error": {"message": "overloaded", "code": 429}}, "model_rate_limited"),
        ({"error": {"message": "the engine died"}}, "model_server_error"),
        ({"error": "the engine died"}, "model_server_error"),
        ({"object": "error", "message": "maximum context length is 8192", "code": 400}, "model_context_overflow"),
    ],
)
async def test_an_error_within_a_stream_is_what_the_server_says_it_is(event, code):
    with pytest.raises(ServerRefusal) as caught:
        await read_back(stream(delta(content="hi"), event))
    assert explain_model_error(caught.value).code == code


async def test_an_error_within_a_stream_never_repeats_the_key():
    with pytest.raises(ServerRefusal) as caught:
        await read_back(
            stream(delta(content="hi"), {"error": {"message": f"{'x' * 400} key {KEY}, and {'x' * 99_000}"}})
        )
    assert KEY[:12] not in f"{caught.value} {caught.value.body} {explain_model_error(caught.value)}"


async def test_comments_carriage_returns_and_event_names_are_no_data():
    body = b": ping\r\nevent: message\r\nid: 1\r\n" + stream(delta(content="hi"), b": more", FINISH)
    assert (await read_back(body.replace(b"\n\n", b"\r\n\r\n"))).content == "hi"


async def test_an_emoji_streamed_as_two_halves_is_one_character_in_the_stored_reply():
    body = stream(b'data: {"choices":[{"delta":{"content":"\\ud83c"}}]}', delta(content="\udf78"), FINISH)
    message = await read_back(body)
    assert message.content.encode("utf-16", "surrogatepass").decode("utf-16") == "🍸"


async def test_totals_repeated_in_every_event_are_not_added_up():
    counts = [{"usage": {"prompt_tokens": 9, "completion_tokens": n, "total_tokens": 9 + n}} for n in (1, 2, 3)]
    body = stream(*(delta(content="x") | one for one in counts), FINISH | counts[-1])
    async with answering(raw(body)) as chat:
        assert (await joined(chat)).usage_metadata["total_tokens"] == 12


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None, "completion_tokens": 2}, {"prompt_tokens": -1, "completion_tokens": 2}]
)
async def test_usage_that_says_nothing_is_absent_and_not_zero(usage):
    assert (await read_back(stream(delta(content="hi"), FINISH | {"usage": usage}))).usage_metadata is None


def piece(arguments, **fields):
    return delta(tool_calls=[{"function": {"arguments": arguments, "name": fields.pop("name", None)}, **fields}])


@pytest.mark.parametrize(
    "events",
    [
        [piece('{"te', index=0, id="c1", name="echo"), piece('xt": "a"}', index=0)],
        [piece('{"te', index=0, id="c1", name="echo"), piece('xt": "a"}', index=0, id="c1", name="echo")],
        [piece('{"te', id="c1", name="echo"), piece('xt": "a"}')],
        [piece({"text": "a"}, id="c1", name="echo")],
    ],
    ids=["as OpenAI", "id and name in every piece", "no index", "arguments as an object"],
)
async def test_calls_are_put_together_however_a_server_numbers_their_pieces(events):
    (call,) = (await read_back(stream(*events, FINISH))).tool_calls
    assert (call["id"], call["name"], call["args"]) == ("c1", "echo", {"text": "a"})


async def test_whole_calls_without_numbers_stay_two():
    calls = [piece('{"text": "a"}', id="c1", name="echo"), piece('{"text": "b"}', id="c2", name="echo")]
    message = await read_back(stream(*calls, FINISH))
    assert [(call["id"], call["args"]["text"]) for call in message.tool_calls] == [("c1", "a"), ("c2", "b")]


async def test_broken_arguments_of_a_whole_answer_are_not_repaired(scripted_model):
    scripted_model.replies([Reply(calls=(CALL,), malformed='{"text": "ab')])
    async with thin(scripted_model) as chat:
        message = await chat.bind_tools([echo]).ainvoke(HELLO)
    assert (message.tool_calls, message.invalid_tool_calls[0]["args"]) == ([], '{"text": "ab')


def test_events_come_out_whole_wherever_the_reads_cut_them():
    body = stream(delta(content="你好🍸"), b": note", delta(content="b"))
    for size in range(1, len(body)):
        splitter = EventSplitter()
        found = [event for at in range(0, len(body), size) for event in splitter.feed(body[at : at + size])]
        assert [json.loads(event)["choices"][0]["delta"]["content"] for event in found[:2]] == ["你好🍸", "b"]
        assert found[2:] == [b"[DONE]"]


def test_a_line_that_never_ends_is_refused():
    splitter = EventSplitter()
    with pytest.raises(UnreadableAnswer, match="longer"):
        for _ in range(20):
            splitter.feed(b"x" * 2**20)


async def test_a_chunk_is_langchains_own(scripted_model):
    async with thin(scripted_model) as chat:
        assert {type(chunk) for chunk in await chunks_of(chat)} == {AIMessageChunk}
