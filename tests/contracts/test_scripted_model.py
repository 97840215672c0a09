"""What our model server sends, as the real `ChatOpenAI` understands it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from tests.scripted_model import Reply, ScriptedModel, ToolCall, scripts
from tests.scripted_model.client import chat_openai, streamed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from langchain_openai import ChatOpenAI


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def model(server: ScriptedModel) -> ScriptedModel:
    server.reset()
    return server


@pytest.fixture
async def chat(model: ScriptedModel) -> AsyncIterator[ChatOpenAI]:
    async with chat_openai(model) as chat:
        yield chat


@tool
def write_file(path: str, content: str) -> str:
    """Write a file."""
    return path + content


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return path


async def test_a_script_streams_its_exact_chunks(chat: ChatOpenAI) -> None:
    pieces = ["Hel", "lo, ", "世", "界 🌍", "\n"]
    texts, whole = await streamed(chat, scripts.script({"chunks": pieces})[1])
    assert texts == pieces
    assert whole.response_metadata["finish_reason"] == "stop"


async def test_numbered_tokens_arrive_all_and_in_order(chat: ChatOpenAI) -> None:
    texts, _ = await streamed(chat, scripts.tokens(300)[1])
    assert texts == [f"t{number} " for number in range(300)]


async def test_paced_tokens_take_their_time(chat: ChatOpenAI) -> None:
    started_at = time.monotonic()
    texts, _ = await streamed(chat, scripts.tokens(30, rate=100)[1])
    assert len(texts) == 30
    assert time.monotonic() - started_at > 0.29


async def test_an_unstreamed_request_gets_the_same_answer(chat: ChatOpenAI, model: ScriptedModel) -> None:
    script_id, prompt = scripts.instant()
    answer = await chat.ainvoke(prompt)
    assert answer.text == f"ok:{script_id}"
    assert [(call.streamed, call.status) for call in model.calls_of(script_id)] == [(False, 200)]


async def test_the_step_is_the_number_of_answers_since_the_script(chat: ChatOpenAI) -> None:
    _script_id, prompt = scripts.script({"text": "one"}, {"text": "two"})
    history: list[Any] = [HumanMessage(prompt)]
    said = []
    for _ in range(3):
        said.append((await chat.ainvoke(history)).text)
        history += [AIMessage(said[-1]), HumanMessage("go on")]
    assert said == ["one", "two", "two"]


async def test_a_later_script_replaces_an_earlier_one(chat: ChatOpenAI) -> None:
    earlier, later = scripts.says("early")[1], scripts.says("late")[1]
    assert (await chat.ainvoke([HumanMessage(earlier), AIMessage("early"), HumanMessage(later)])).text == "late"


@pytest.mark.parametrize("split", [False, True])
async def test_tool_calls_arrive_whole_however_they_are_split(chat: ChatOpenAI, split: bool) -> None:
    files = [{"path": f"Grüße-{n}.md", "content": '世界 "🌍" \\ \n Ж'} for n in range(3)]
    calls = [scripts.call("write_file", **arguments) for arguments in files]
    prompt = scripts.script({"text": "Writing.", "calls": calls, "split": split})[1]
    texts, whole = await streamed(chat.bind_tools([write_file]), prompt)
    assert "".join(texts) == "Writing."
    assert [call["args"] for call in whole.tool_calls] == files
    assert len({call["id"] for call in whole.tool_calls}) == 3
    assert whole.response_metadata["finish_reason"] == "tool_calls"
    assert not whole.invalid_tool_calls


async def test_split_bytes_cut_through_multi_byte_characters(model: ScriptedModel) -> None:
    body = {
        "stream": True,
        "messages": [{"role": "user", "content": scripts.says("世界🌍" * 9, split=True)[1]}],
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{model.url}/chat/completions", json=body) as r,
    ):
        pieces = [piece async for piece, _ in r.content.iter_chunks()]
    with pytest.raises(UnicodeDecodeError):
        for piece in pieces:
            piece.decode()
    assert "世界🌍" * 9 in b"".join(pieces).decode()


async def test_without_offered_tools_there_are_no_tool_calls(chat: ChatOpenAI) -> None:
    script_id, prompt = scripts.tool_loop("write_file", {"path": "a", "content": "b"})
    answer = await chat.ainvoke(prompt)
    assert (answer.tool_calls, answer.text) == ([], f"ok:{script_id}")


async def test_call_ids_differ_between_turns_and_repeat_for_the_same_conversation(chat: ChatOpenAI) -> None:
    bound = chat.bind_tools([write_file])
    _, prompt = scripts.tool_loop("write_file", {"path": "a", "content": "b"})
    first = await bound.ainvoke(prompt)
    again = await bound.ainvoke(prompt)
    answered = ToolMessage("done", tool_call_id=first.tool_calls[0]["id"])
    second = await bound.ainvoke([HumanMessage(prompt), first, answered])
    assert first.tool_calls[0]["id"] == again.tool_calls[0]["id"] != second.tool_calls[0]["id"]


async def test_a_script_can_repeat_tool_call_ids(chat: ChatOpenAI) -> None:
    calls = [scripts.call("write_file", path="a", content="b")] * 2
    answer = await chat.bind_tools([write_file]).ainvoke(scripts.script({"calls": calls, "duplicate_ids": True})[1])
    assert [call["id"] for call in answer.tool_calls] == ["call_duplicate"] * 2


@pytest.mark.parametrize("stream", [False, True])
async def test_malformed_arguments_become_invalid_tool_calls(chat: ChatOpenAI, stream: bool) -> None:
    _, prompt = scripts.tool_then("write_file", {"path": "a"}, malformed=True)
    bound = chat.bind_tools([write_file])
    message = (await streamed(bound, prompt))[1] if stream else await bound.ainvoke(prompt)
    assert message.tool_calls == []
    assert [call["name"] for call in message.invalid_tool_calls] == ["write_file"]


async def test_chat_openai_repairs_a_truncated_stream_of_arguments_in_silence(chat: ChatOpenAI) -> None:
    _, prompt = scripts.tool_then("write_file", {}, malformed='{"path": "a.md", "content": "half a sen')
    bound = chat.bind_tools([write_file])
    assert (await streamed(bound, prompt))[1].tool_calls[0]["args"] == {
        "path": "a.md",
        "content": "half a sen",
    }
    assert (await bound.ainvoke(prompt)).tool_calls == []


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_is_what_the_script_says(chat: ChatOpenAI, stream: bool) -> None:
    _, prompt = scripts.says("hello", usage=[120, 30])
    message = (await streamed(chat, prompt))[1] if stream else await chat.ainvoke(prompt)
    assert message.usage_metadata
    assert (message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]) == (120, 30)


async def test_usage_may_carry_cached_tokens(chat: ChatOpenAI) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 64}}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, **details}
    _, whole = await streamed(chat, scripts.says("hello", usage=usage)[1])
    assert whole.usage_metadata
    assert whole.usage_metadata["input_token_details"]["cache_read"] == 64


@pytest.mark.parametrize("stream", [False, True])
async def test_a_script_can_leave_usage_out(chat: ChatOpenAI, stream: bool) -> None:
    _, prompt = scripts.says("hello", no_usage=True)
    message = (await streamed(chat, prompt))[1] if stream else await chat.ainvoke(prompt)
    assert message.usage_metadata is None


async def test_a_stream_reports_usage_only_to_who_asks_for_it(model: ScriptedModel) -> None:
    async with chat_openai(model, stream_usage=None) as unasked:  # what a plain base_url gives
        assert (await streamed(unasked, scripts.instant()[1]))[1].usage_metadata is None


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_failing_attempts_are_retried(chat: ChatOpenAI, model: ScriptedModel, status: int) -> None:
    script_id, prompt = scripts.flaky([status, status])
    assert (await streamed(chat, prompt))[0] == [f"ok:{script_id}"]
    assert [call.status for call in model.calls_of(script_id)] == [status, status, 200]


async def test_a_refused_key_is_not_retried(chat: ChatOpenAI, model: ScriptedModel) -> None:
    script_id, prompt = scripts.flaky([401])
    with pytest.raises(Exception, match="401"):
        await chat.ainvoke(prompt)
    assert [call.status for call in model.calls_of(script_id)] == [401]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cut_connection_raises(chat: ChatOpenAI, model: ScriptedModel, stream: bool) -> None:
    script_id, prompt = scripts.cut(after=10)
    seen: list[str] = []
    with pytest.raises(Exception, match=r"(?i)incomplete chunked read|connection error") as raised:
        if stream:
            async for chunk in chat.astream(prompt):
                seen += [chunk.text] if chunk.text else []
        else:
            await chat.ainvoke(prompt)
    assert not isinstance(raised.value, AssertionError)
    assert seen == ([f"t{number} " for number in range(10)] if stream else [])
    assert all(call.cut_at and not call.ended_at for call in model.calls_of(script_id))


async def test_chat_openai_takes_a_clean_close_for_a_whole_answer(chat: ChatOpenAI) -> None:
    texts, whole = await streamed(chat, scripts.closed(after=10)[1])
    assert len(texts) == 10
    assert "finish_reason" not in whole.response_metadata  # the only trace of the loss
    assert whole.usage_metadata is None


async def test_a_clean_close_within_tool_arguments_leaves_a_repaired_call(chat: ChatOpenAI) -> None:
    prompt = scripts.tool_then("write_file", {"path": "a.md", "content": "long"}, split=True, close=10)[1]
    _, whole = await streamed(chat.bind_tools([write_file]), prompt)
    assert whole.tool_calls[0]["args"].get("content") != "long"
    assert "finish_reason" not in whole.response_metadata


@pytest.mark.parametrize("stream", [False, True])
async def test_garbage_raises(chat: ChatOpenAI, stream: bool) -> None:
    prompt = scripts.script({"garbage": True})[1]
    with pytest.raises(Exception, match=r".") as raised:
        await (streamed(chat, prompt) if stream else chat.ainvoke(prompt))
    assert not isinstance(raised.value, AssertionError)


@pytest.mark.parametrize("step", [{"hang": True}, {"tokens": 20, "stall": 5}])
async def test_a_client_that_goes_away_is_noticed(chat: ChatOpenAI, model: ScriptedModel, step: dict[str, Any]) -> None:
    script_id, prompt = scripts.script(step)
    asking = asyncio.create_task(streamed(chat, prompt))
    await model.until(lambda m: bool(m.calls_of(script_id)))
    asking.cancel()
    await model.until(lambda m: m.calls_of(script_id)[0].disconnected_at is not None)
    assert (model.in_flight, model.ledger.disconnects) == (0, 1)


async def test_a_gate_holds_answers_until_it_is_opened(chat: ChatOpenAI, model: ScriptedModel) -> None:
    answers = [asyncio.create_task(chat.ainvoke(scripts.gated("go")[1])) for _ in range(3)]
    await model.until(lambda m: m.in_flight == 3)
    assert not any(answer.done() for answer in answers)
    model.open_gate("go")
    assert all(answer.text.startswith("ok:") for answer in await asyncio.gather(*answers))
    assert model.max_in_flight == 3


async def test_a_gate_can_stand_in_the_middle_of_a_stream(chat: ChatOpenAI, model: ScriptedModel) -> None:
    stream: AsyncIterator[Any] = chat.astream(scripts.script({"tokens": 4, "gate": "mid", "gate_after": 2})[1])
    seen: list[str] = []
    async for chunk in stream:
        seen += [chunk.text] if chunk.text else []
        if seen == ["t0 ", "t1 "]:
            model.open_gate("mid")
    assert seen == ["t0 ", "t1 ", "t2 ", "t3 "]


async def test_lone_surrogates_and_nul_survive_the_wire(chat: ChatOpenAI) -> None:
    _, prompt = scripts.script({"chunks": ["a\ud800b", "\x00"]})
    assert (await streamed(chat, prompt))[0] == ["a\ud800b", "\x00"]


async def test_a_megabyte_goes_both_ways(chat: ChatOpenAI) -> None:
    _, prompt = scripts.says("x" * 1_000_000)
    assert len((await streamed(chat, "y" * 1_000_000 + prompt))[1].text) == 1_000_000


async def test_unscripted_requests_get_the_queued_replies_in_their_order(
    chat: ChatOpenAI, model: ScriptedModel
) -> None:
    call = ToolCall(name="write_file", arguments={"path": "a", "content": "b"}, call_id="mine")
    model.replies(["First.", Reply(calls=(call,))])
    bound = chat.bind_tools([write_file])
    assert (await bound.ainvoke("hello")).text == "First."
    assert (await bound.ainvoke("hello")).tool_calls[0]["id"] == "mine"
    assert (await bound.ainvoke("hello")).text == "ok"


async def test_a_responder_sees_the_request_and_may_leave_it_to_the_queue(
    chat: ChatOpenAI, model: ScriptedModel
) -> None:
    model.replies(["From the queue."])

    @model.responder
    def answer(call: Any) -> Reply | None:
        return Reply(text=f"{call.system_text}|{call.user_text}|{call.tool_names}") if call.system_text else None

    asked = await chat.bind_tools([read_file]).ainvoke([SystemMessage("Be brief."), HumanMessage("Hello")])
    assert asked.text == "Be brief.|Hello|('read_file',)"
    assert (await chat.ainvoke("Hello")).text == "From the queue."


async def test_an_unknown_field_of_a_script_is_refused_by_name(chat: ChatOpenAI) -> None:
    with pytest.raises(Exception, match="slep"):
        await chat.ainvoke(scripts.script({"slep": 1})[1])


async def test_a_mark_that_is_no_script_is_ordinary_text(chat: ChatOpenAI) -> None:
    assert (await chat.ainvoke("mail me @@not-a-script-at-all@@")).text == "ok"


async def test_statistics_and_log_are_served_and_reset(chat: ChatOpenAI, model: ScriptedModel) -> None:
    script_id, prompt = scripts.instant()
    await chat.ainvoke(prompt)
    async with aiohttp.ClientSession(model.root_url) as session:
        async with session.get("/log", params={"id": script_id}) as response:
            (record,) = await response.json()
        await session.post("/reset")
        async with session.get("/stats") as response:
            assert (await response.json())["requests"] == 0
        async with session.get("/v1/models") as response:
            assert (await response.json())["data"][0]["id"] == "scripted"
    assert record["started_at"] <= record["first_byte_at"] <= record["ended_at"] <= time.monotonic()


async def test_many_streams_run_at_once(model: ScriptedModel) -> None:
    body = {"stream": True, "messages": [{"role": "user", "content": scripts.gated("all")[1]}]}

    async def ask(session: aiohttp.ClientSession) -> bytes:
        async with session.post(f"{model.url}/chat/completions", json=body) as response:
            return await response.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        asking = [asyncio.create_task(ask(session)) for _ in range(300)]
        await model.until(lambda m: m.in_flight == 300)
        model.open_gate("all")
        answers = await asyncio.gather(*asking)
    assert all(answer.endswith(b"data: [DONE]\n\n") for answer in answers)
