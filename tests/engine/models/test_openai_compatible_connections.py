"""The thin chat model and its connections: retries, proxies, many calls at once, and what a cancelled call leaves."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from aiohttp import web
from langchain_core.messages import HumanMessage

from engine.agent import Step, build, drive
from engine.config.schema import ModelConfig
from engine.errors import explain_model_error
from engine.models.openai_compatible import OpenAICompatibleChat
from engine.models.openai_compatible_http import backoff_seconds, retry_wait_seconds
from engine.models.openai_compatible_wire import ServerRefusal
from engine.models.registry import ModelRegistry
from tests.engine.fakes import echo, run_context
from tests.engine.models.thin import (
    FINISH,
    KEY,
    answering,
    delta,
    joined,
    raw,
    stream,
    thin,
)
from tests.scripted_model import Reply, ToolCall


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_server_that_may_recover_is_asked_twice_more_and_no_more(scripted_model, status):
    scripted_model.responder(lambda call: Reply(fail_statuses=(status,)) if call.number <= 2 else Reply(text="third"))
    async with thin(scripted_model) as chat:
        assert (await joined(chat)).content == "third"
        scripted_model.responder(lambda call: Reply(fail_statuses=(status,)))
        with pytest.raises(ServerRefusal):
            await joined(chat)
    assert len(scripted_model.requests) == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_not_tried_again(scripted_model, status):
    scripted_model.replies([Reply(fail_statuses=(status,))])
    async with thin(scripted_model) as chat:
        with pytest.raises(ServerRefusal):
            await joined(chat)
    assert len(scripted_model.requests) == 1


@pytest.mark.parametrize("fault", [{"cut_after": 1}, {"close_after": 1}])
async def test_nothing_is_tried_again_once_the_answer_has_begun(scripted_model, fault):
    scripted_model.replies([Reply(tokens=5, **fault)] * 3)
    async with thin(scripted_model) as chat:
        with pytest.raises(Exception):  # noqa: B017 - aiohttp's own, or StreamCut
            await joined(chat)
    assert len(scripted_model.requests) == 1


async def test_a_connection_that_the_server_closed_unanswered_is_made_again():
    seen = []

    async def first_drops(request):
        seen.append(await request.read())
        if len(seen) == 1:
            request.transport.abort()
        return web.Response(body=stream(delta(content="hi"), FINISH), content_type="text/event-stream")

    async with answering(first_drops) as chat:
        assert (await joined(chat)).content == "hi"
    assert seen[0] == seen[1]


async def test_a_wait_of_more_than_a_minute_is_reported_instead_of_waited():
    seen = []

    async def full(_request):
        seen.append(1)
        return web.json_response({"error": {"message": "later"}}, status=429, headers={"Retry-After": "600"})

    async with answering(full) as chat:
        with pytest.raises(ServerRefusal):
            await joined(chat)
    assert len(seen) == 1


def test_the_wait_is_what_the_server_asks_for_else_grows_from_half_a_second():
    assert retry_wait_seconds({"retry-after-ms": "250", "retry-after": "9"}, 0) == 0.25
    assert retry_wait_seconds({"retry-after": "1.5"}, 0) == 1.5
    assert retry_wait_seconds({"retry-after": "3600"}, 0) is None
    in_ten_seconds = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 10))
    assert 8 <= retry_wait_seconds({"retry-after": in_ten_seconds}, 0) <= 10
    for nonsense in ("", "soon", "-3", "0", "nan", "1e9", "Mon, 99 Xxx"):
        assert 0.375 <= retry_wait_seconds({"retry-after": nonsense}, 0) <= 0.5
    assert [3 / 4 <= backoff_seconds(n) / longest <= 1 for n, longest in ((0, 0.5), (1, 1), (3, 4), (9, 8))] == [
        True
    ] * 4


async def test_a_redirect_is_not_followed(scripted_model):
    async with answering(raw(b"", status=307, headers={"Location": scripted_model.url})) as chat:
        with pytest.raises(ServerRefusal, match="base_url"):
            await joined(chat)
    assert scripted_model.requests == []


async def test_an_error_is_short_and_never_repeats_the_key_or_a_secret_header():
    said = f"Incorrect key {KEY} with token-of-the-team: " + "x" * 100_000
    for size in (1_000, 100_000):
        text = json.dumps({"error": {"message": said[:size]}}).encode()
        handler = raw(text, status=401, content_type="application/json")
        async with answering(handler, default_headers={"X-Token": "token-of-the-team"}) as chat:
            with pytest.raises(ServerRefusal) as caught:
                await joined(chat)
        told = f"{caught.value} {caught.value.body} {explain_model_error(caught.value)} {chat!r}"
        assert len(str(caught.value)) < 700
        assert KEY not in told
        assert "token-of-the-team" not in told


async def test_a_loop_keeps_its_connections_until_the_registry_closes_them(scripted_model):
    entry = {"name": "gpt", "use": "engine.models.openai_compatible:OpenAICompatibleChat", "model": "m"}
    models = ModelRegistry([ModelConfig(base_url=scripted_model.url, **entry)], {})
    chat = models.chat_model("gpt")
    await joined(chat)
    session = chat._server.session()
    await joined(chat)
    assert chat._server.session() is session
    await models.aclose()
    assert session.closed


@pytest.mark.parametrize("reply", [Reply(text="short"), Reply(tokens=200), Reply(text="x", split=True)])
async def test_a_connection_serves_one_call_after_another(scripted_model, reply):
    scripted_model.replies([reply] * 5)
    async with thin(scripted_model) as chat:
        for _ in range(5):
            await joined(chat)
        assert sum(map(len, chat._server.session().connector._conns.values())) == 1


async def test_the_proxy_of_the_environment_is_used(scripted_model, monkeypatch):
    monkeypatch.setenv("http_proxy", scripted_model.root_url)
    monkeypatch.setenv("no_proxy", "")
    chat = OpenAICompatibleChat(model="m", base_url="http://llm.invalid/v1")
    assert (await joined(chat)).content
    await chat.aclose()
    assert scripted_model.requests[0].headers["host"] == "llm.invalid"


async def test_a_host_exempt_from_the_proxy_is_reached_without_it(scripted_model, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with thin(scripted_model) as chat:
        assert (await joined(chat)).content


async def test_two_hundred_calls_at_once_are_all_open_together(scripted_model):
    scripted_model.responder(lambda call: Reply(text=f"to {call.user_text}", gate="all"))
    async with thin(scripted_model) as chat:
        asked = asyncio.gather(*(joined(chat, [HumanMessage(str(number))]) for number in range(200)))
        await scripted_model.until(lambda model: model.in_flight == 200, 30)
        scripted_model.open_gate("all")
        assert [message.content for message in await asked] == [f"to {number}" for number in range(200)]


async def test_two_hundred_agents_at_once_finish_their_tool_calls(scripted_model):
    def reply(call):
        done = call.messages[-1]["role"] == "tool"
        text = call.user_text
        return Reply(text=f"done {text}") if done else Reply(calls=(ToolCall(name="echo", arguments={"text": text}),))

    scripted_model.responder(reply)

    async def one(agent, number):
        run = drive(agent, [HumanMessage(str(number))], run_context(is_subagent=True))
        return [message for part in [p async for p in run] if isinstance(part, Step) for message in part.messages]

    async with thin(scripted_model) as chat:
        agent = build(chat, [echo], is_subagent=True)
        runs = await asyncio.gather(*(one(agent, number) for number in range(200)))
    assert [run[1].content for run in runs] == [f"echo {number}" for number in range(200)]
    assert [run[2].content for run in runs] == [f"done {number}" for number in range(200)]


async def test_cancelling_a_call_that_has_not_been_answered_closes_its_connection(scripted_model):
    scripted_model.replies([Reply(hang=True)])
    async with thin(scripted_model) as chat:
        call = asyncio.create_task(joined(chat))
        await scripted_model.until(lambda model: model.in_flight == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await scripted_model.until(lambda model: model.requests[0].disconnected_at is not None)


async def test_silence_within_an_answer_is_a_timeout_and_not_waited_for(scripted_model):
    scripted_model.replies([Reply(tokens=5, stall_after=2)])
    async with thin(scripted_model, timeout_seconds=0.2) as chat:
        with pytest.raises(TimeoutError) as caught:
            await joined(chat)
    assert explain_model_error(caught.value).sentence == "The model server did not answer in time."
