"""ChatOpenAI's streams past the SDK's walks: what is sent and what is read are what they were with them."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from openai import Timeout

from engine.config.schema import ModelConfig
from engine.models.construct import construct
from tests.engine.fakes import echo
from tests.scripted_model import Reply, ToolCall

CONVERSATION = [
    SystemMessage("Be brief."),
    HumanMessage([{"type": "text", "text": "What is this? 这是什么?"}, {"type": "text", "text": "🦌"}]),
    AIMessage("", tool_calls=[{"name": "echo", "args": {"text": "a"}, "id": "c1"}]),
    ToolMessage("echo a", tool_call_id="c1", name="echo"),
]
OPTIONS = {
    "temperature": 0.5,
    "extra_body": {"seed": 7},
    "default_headers": {"X-Team": "deer"},
    "default_query": {"version": "1"},
    "model_kwargs": {"parallel_tool_calls": False, "extra_headers": {"X-Call": "one"}},
}


@pytest.fixture
def both(scripted_model):
    """The class as it is, and as the product builds it."""
    common = {"model": "gpt-test", "api_key": "sk-test-0123456789abcdef", "base_url": scripted_model.url}
    timeout = Timeout(20)  # a plain number would share its connections with other tests
    plain = ChatOpenAI(streaming=True, stream_usage=True, max_retries=0, timeout=timeout, **common, **OPTIONS)
    ours = construct(ModelConfig(name="gpt", use="langchain_openai:ChatOpenAI", **common, **OPTIONS))
    return plain, ours


async def pieces(chat):
    bound = chat.bind_tools([echo], tool_choice="auto")
    found = [piece async for piece in bound.astream(CONVERSATION, stop=["END"])]
    await chat.root_async_client.close()
    return [piece.model_dump(exclude={"id"}) for piece in found]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="It is a deer.", usage=(100, 7)),
        Reply(
            text="Let me see.",
            calls=(
                ToolCall(name="echo", arguments={"text": "你好"}, call_id="c1"),
                ToolCall(name="echo", arguments={"text": "b"}, call_id="c2"),
            ),
            usage=(100, 7),
            split=True,
        ),
    ],
    ids=["text", "calls"],
)
async def test_the_same_is_sent_and_the_same_pieces_are_read(scripted_model, both, reply):
    scripted_model.replies([reply, reply])
    plain, ours = [await pieces(chat) for chat in both]
    assert ours == plain
    with_walks, without = scripted_model.requests
    assert without.body == with_walks.body
    assert without.body["seed"] == 7
    headers = [
        {name: call.headers.get(name) for name in ("authorization", "x-team", "x-call", "content-type", "accept")}
        for call in (with_walks, without)
    ]
    assert headers[0] == headers[1]
    assert headers[1]["x-call"] == "one"


async def test_what_is_not_streamed_goes_the_usual_way(scripted_model, both):
    scripted_model.replies([Reply(text="whole")])
    chat = both[1].model_copy(update={"streaming": False, "disable_streaming": True})
    assert (await chat.ainvoke("Go.")).text == "whole"
    assert not scripted_model.requests[0].streamed
    await chat.root_async_client.close()
    await both[0].root_async_client.close()
