"""The whole way to an OpenAI-compatible server and back, through langchain_openai and through the thin model."""

from __future__ import annotations

import asyncio
import socket

import pytest
from langchain_core.messages import HumanMessage

from engine.agent import Step, TextDelta, build, drive
from engine.config.schema import ModelConfig
from engine.errors import explain_model_error
from engine.models.registry import ModelRegistry
from tests.engine.fakes import echo, run_context
from tests.scripted_model import Reply, ToolCall

USES = ("langchain_openai:ChatOpenAI", "engine.models.openai_compatible:OpenAICompatibleChat")


@pytest.fixture(params=USES, ids=["openai", "thin"])
def registry_for(request):
    """Makes a registry whose only model, `gpt`, speaks with the server at an address."""

    def make(url, **changes):
        fields = {
            "name": "gpt",
            "use": request.param,
            "model": "gpt-test",
            "api_key": "sk-test-0123456789abcdef",
            "base_url": url,
        }
        return ModelRegistry([ModelConfig(**(fields | changes))], {})

    return make


async def run(models, *, context=None):
    agent = build(models.chat_model("gpt"), [echo], is_subagent=True, gate=models.gate("gpt"))
    context = context or run_context(is_subagent=True)
    try:
        return [one async for one in drive(agent, [HumanMessage("Go.")], context)]
    finally:
        await models.aclose()


def messages_of(yielded):
    return [message for one in yielded if isinstance(one, Step) for message in one.messages]


@pytest.fixture
def fault_of(registry_for):
    async def fault(model, **changes):
        changes = {"max_retries": 0, **changes}
        with pytest.raises(Exception) as caught:
            await run(registry_for(model.url, **changes))
        return explain_model_error(caught.value)

    return fault


async def test_text_calls_and_usage_come_through_the_real_client(scripted_model, registry_for):
    calls = (ToolCall(name="echo", arguments={"text": "你好"}), ToolCall(name="echo", arguments={"text": "b"}))
    scripted_model.replies(
        [Reply(text="Let me see.", calls=calls, usage=(100, 7), split=True), Reply(text="All good.")]
    )
    yielded = await run(registry_for(scripted_model.url))
    messages = messages_of(yielded)
    assert [message.type for message in messages] == ["ai", "tool", "tool", "ai"]
    assert sorted(message.content for message in messages[1:3]) == ["echo b", "echo 你好"]
    assert messages[0].usage_metadata["total_tokens"] == 107
    assert messages[3].text == "All good."
    pieces = [one for one in yielded if isinstance(one, TextDelta) and one.message_id == messages[3].id]
    assert "".join(one.text for one in pieces) == "All good."


async def test_the_request_carries_model_key_tools_and_one_system_message(scripted_model, registry_for):
    scripted_model.replies(["ok"])
    await run(registry_for(scripted_model.url, temperature=0.5, max_tokens=50))
    (call,) = scripted_model.requests
    assert call.body["model"] == "gpt-test"
    assert call.body["temperature"] == 0.5
    assert call.body.get("max_completion_tokens", call.body.get("max_tokens")) == 50
    assert call.tool_names == ("echo",)
    assert [message["role"] for message in call.messages] == ["system", "user"]
    assert call.wants_usage


async def test_a_stream_closed_before_it_was_finished_is_a_cut_stream(scripted_model, fault_of):
    scripted_model.replies([Reply(tokens=10, close_after=3)])
    assert (await fault_of(scripted_model)).code == "model_stream_cut"


async def test_a_connection_aborted_in_the_middle_is_a_cut_stream(scripted_model, fault_of):
    scripted_model.replies([Reply(tokens=10, cut_after=3)])
    assert (await fault_of(scripted_model)).code == "model_stream_cut"


async def test_a_stream_closed_before_its_first_piece_is_a_cut_stream(scripted_model, fault_of):
    scripted_model.replies([Reply(tokens=10, close_after=0)])
    assert (await fault_of(scripted_model)).code == "model_stream_cut"


async def test_an_answer_that_is_not_the_protocol_at_all_is_a_fault_and_no_answer(scripted_model, fault_of):
    scripted_model.replies([Reply(garbage=True)])
    assert (await fault_of(scripted_model)).code in ("model_unreadable", "model_stream_cut")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "model_bad_request"),
        (401, "model_refused_key"),
        (403, "model_refused_key"),
        (404, "model_unknown"),
        (429, "model_rate_limited"),
        (500, "model_server_error"),
        (503, "model_server_error"),
    ],
)
async def test_an_error_status_is_reported_as_what_it_is(scripted_model, status, code, fault_of):
    scripted_model.replies([Reply(fail_statuses=(status,) * 5)] * 5)
    fault = await fault_of(scripted_model)
    assert fault.code == code
    assert str(status) in fault.sentence
    assert "sk-test" not in fault.sentence


async def test_a_full_server_is_tried_again(scripted_model, registry_for):
    @scripted_model.responder
    def first_refuses(call):
        return Reply(fail_statuses=(429,)) if call.number == 1 else Reply(text="second time")

    assert messages_of(await run(registry_for(scripted_model.url)))[-1].text == "second time"


async def test_a_server_that_is_not_there_is_unreachable(registry_for):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(Exception) as caught:
        await run(registry_for(url, max_retries=0))
    assert explain_model_error(caught.value).code == "model_unreachable"


async def test_a_server_that_stays_silent_is_unreachable_after_its_timeout(scripted_model, fault_of):
    scripted_model.replies([Reply(hang=True)])
    fault = await fault_of(scripted_model, timeout_seconds=1)
    assert (fault.code, fault.sentence) == ("model_unreachable", "The model server did not answer in time.")


async def test_malformed_arguments_are_answered_and_the_run_goes_on(scripted_model, registry_for):
    scripted_model.replies(
        [Reply(calls=(ToolCall(name="echo", arguments={"text": "a"}),), malformed='{"text": "ab'), "Recovered."]
    )
    messages = messages_of(await run(registry_for(scripted_model.url)))
    assert "not valid JSON" in messages[1].content
    assert messages[-1].text == "Recovered."


async def test_doubled_call_ids_of_a_server_do_not_lose_a_call(scripted_model, registry_for):
    calls = (ToolCall(name="echo", arguments={"text": "a"}), ToolCall(name="echo", arguments={"text": "b"}))
    scripted_model.replies([Reply(calls=calls, duplicate_ids=True), Reply(calls=calls, duplicate_ids=True), "ok"])
    messages = messages_of(await run(registry_for(scripted_model.url)))
    results = [message for message in messages if message.type == "tool"]
    assert sorted(message.content for message in results) == ["echo a", "echo a", "echo b", "echo b"]
    assert len({message.tool_call_id for message in results}) == 4


async def test_cancelling_the_consumer_closes_the_connection_to_the_model(scripted_model, registry_for):
    scripted_model.replies([Reply(tokens=5, stall_after=2)])
    models = registry_for(scripted_model.url)
    agent = build(models.chat_model("gpt"), [echo], is_subagent=True, gate=models.gate("gpt"))
    streaming = asyncio.Event()

    async def consume():
        async for _ in drive(agent, [HumanMessage("Go.")], run_context(is_subagent=True)):
            streaming.set()

    consumer = asyncio.create_task(consume())
    await streaming.wait()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    await scripted_model.until(lambda model: model.requests[0].disconnected_at is not None)
    await models.aclose()


async def test_closing_the_generator_closes_the_connection_to_the_model(scripted_model, registry_for):
    scripted_model.replies([Reply(tokens=5, stall_after=2)])
    models = registry_for(scripted_model.url)
    run = drive(build(models.chat_model("gpt"), [echo], is_subagent=True), [HumanMessage("Go.")], run_context())
    assert isinstance(await anext(run), TextDelta)
    await run.aclose()
    await scripted_model.until(lambda model: model.requests[0].disconnected_at is not None)
    await models.aclose()


def test_two_event_loops_never_share_an_http_client(scripted_model, registry_for):
    models = registry_for(scripted_model.url)

    async def client():
        chat = models.chat_model("gpt")
        held = chat.root_async_client._client if hasattr(chat, "root_async_client") else chat._server.session()
        await models.aclose()
        return held

    clients = [asyncio.run(client()) for _ in range(2)]
    assert clients[0] is not clients[1]
