"""The thin chat model: the same requests and messages as ChatOpenAI, and how it treats server and connections."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, SecretStr, ValidationError

from engine.config.schema import ModelConfig
from engine.errors import ModelUnavailable
from engine.models.openai_compatible import OpenAICompatibleChat
from engine.models.registry import ModelRegistry
from tests.engine.fakes import echo
from tests.engine.models.thin import (
    HELLO,
    KEY,
    joined,
    thin,
)
from tests.scripted_model import Reply, ToolCall
from tests.scripted_model.client import chat_openai

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel


def essence(message):
    return (
        message.content,
        [(call["name"], call["args"]) for call in message.tool_calls],
        message.usage_metadata,
        message.response_metadata["finish_reason"],
        message.response_metadata["model_name"],
    )


CALLS = (ToolCall(name="echo", arguments={"text": "你好 🍸"}), ToolCall(name="echo", arguments={"text": "b", "n": [1]}))
REPLIES = {
    "text": Reply(text="Grüße, 你好 🍸.", usage=(10, 5)),
    "numbered tokens": Reply(tokens=300, usage=(10, 300)),
    "pieces": Reply(chunks=("a", "", " b", "你"), usage=(10, 5)),
    "cut between any two bytes": Reply(text="你好🍸" * 20, split=True, usage=(10, 5)),
    "calls": Reply(text="Let me see.", calls=CALLS, usage=(10, 5)),
    "calls in pieces": Reply(calls=CALLS, split=True, usage=(10, 5)),
    "cut short by the provider": Reply(text="And then", finish_reason="length", usage=(10, 5)),
    "no usage": Reply(text="ok", reports_usage=False),
    "detailed usage": Reply(
        text="ok",
        usage={
            "prompt_tokens": 90,
            "completion_tokens": 7,
            "total_tokens": 97,
            "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": None},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    ),
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_both_classes_make_the_same_message_of_the_same_answer(scripted_model, reply, streamed):
    async def ask(chat: BaseChatModel):
        bound = chat.bind_tools([echo])
        return await (joined(bound) if streamed else bound.ainvoke(HELLO))

    scripted_model.replies([reply, reply])
    async with chat_openai(scripted_model) as openai, thin(scripted_model) as ours:
        expected, got = await ask(openai), await ask(ours)
    assert essence(got) == essence(expected)
    assert [request.streamed for request in scripted_model.requests] == [streamed, streamed]


@pytest.mark.parametrize("choice", ["auto", "none", "any", "required", True, "echo", None, False])
async def test_both_classes_send_the_same_tools_and_choice(scripted_model, choice):
    async with chat_openai(scripted_model) as openai, thin(scripted_model) as ours:
        for chat in (openai, ours):
            await chat.bind_tools([echo], tool_choice=choice).ainvoke(HELLO)
    theirs, got = [request.body for request in scripted_model.requests]
    assert got["tools"] == theirs["tools"]
    assert got.get("tool_choice") == theirs.get("tool_choice")


HISTORY = [
    SystemMessage("Be brief."),
    HumanMessage([{"type": "text", "text": "What is this?"}, {"type": "image", "url": "https://example.com/a.png"}]),
    AIMessage("", tool_calls=[{"id": "c1", "name": "echo", "args": {"text": "你"}}]),
    ToolMessage("echo 你", tool_call_id="c1", name="echo"),
    AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "A cat."}]),
    HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}], name="lin"),
    HumanMessage([{"type": "image", "base64": base64.b64encode(b"x").decode(), "mime_type": "image/png"}]),
]


async def test_both_classes_send_the_same_history(scripted_model):
    async with chat_openai(scripted_model) as openai, thin(scripted_model) as ours:
        for chat in (openai, ours):
            await joined(chat, HISTORY)
    theirs, got = [[*map(plain, request.messages)] for request in scripted_model.requests]
    assert got == theirs


def plain(message):
    """The message with its calls' arguments read: spaces and escapes in them mean nothing."""
    calls = [
        call | {"function": call["function"] | {"arguments": json.loads(call["function"]["arguments"])}}
        for call in message.get("tool_calls", ())
    ]
    return message | {"tool_calls": calls}


async def test_options_headers_and_further_fields_reach_the_server(scripted_model):
    options = {"temperature": 0.5, "max_tokens": 9, "extra_body": {"seed": 7}, "default_headers": {"X-Team": "deer"}}
    async with thin(scripted_model, **options) as chat:
        await joined(chat, stop=["END"], top_p=0.1)
    (request,) = scripted_model.requests
    sent = {name: request.body[name] for name in ("temperature", "max_tokens", "seed", "stop", "top_p", "stream")}
    assert sent == {"temperature": 0.5, "max_tokens": 9, "seed": 7, "stop": ["END"], "top_p": 0.1, "stream": True}
    assert request.wants_usage
    assert (request.headers["authorization"], request.headers["x-team"]) == (f"Bearer {KEY}", "deer")


async def test_usage_is_not_asked_for_where_that_is_switched_off(scripted_model):
    async with thin(scripted_model, stream_usage=False) as chat:
        assert (await joined(chat)).usage_metadata is None
    assert "stream_options" not in scripted_model.requests[0].body


async def test_an_address_may_end_with_a_slash_and_no_key_means_no_header(scripted_model):
    chat = OpenAICompatibleChat(model="m", base_url=scripted_model.url + "/")
    assert (await joined(chat)).content
    await chat.aclose()
    assert "authorization" not in scripted_model.requests[0].headers


async def test_text_that_no_encoder_takes_is_sent_all_the_same(scripted_model):
    calls = [{"id": "c", "name": "echo", "args": {"n": 2**80, "text": "\ud800"}}]
    history = [
        HumanMessage("half \ud83c of it\x00"),
        AIMessage("", tool_calls=calls),
        ToolMessage("x", tool_call_id="c"),
    ]
    async with thin(scripted_model) as chat:
        await joined(chat, [*history, HumanMessage("y" * 2**21)])
    (request,) = scripted_model.requests
    assert request.messages[0]["content"] == "half � of it�"
    assert json.loads(request.messages[1]["tool_calls"][0]["function"]["arguments"]) == {"n": 2**80, "text": "�"}


def test_tools_are_described_once_for_each_set():
    chat = OpenAICompatibleChat(model="m")
    first, second, strict = (chat.bind_tools([echo], **options) for options in ({}, {}, {"strict": True}))
    assert first.kwargs["tools"] is second.kwargs["tools"]
    assert strict.kwargs["tools"][0]["function"]["strict"] is True


def test_the_key_shows_nowhere_in_the_model():
    chat = OpenAICompatibleChat(model="m", api_key=KEY, default_headers={"X-Token": "token-of-the-team"})
    shown = f"{chat!r} {chat} {chat.model_dump()} {chat._identifying_params} {chat.to_json()} {chat._serialized}"
    assert KEY not in shown
    assert "token-of-the-team" not in shown
    assert isinstance(chat.api_key, SecretStr)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 5}, "seed"),
        ({"base_url": "ftp://example.com"}, "base_url"),
        ({"base_url": "https://me:hunter2@example.com"}, "default_headers"),
        ({"base_url": "nonsense"}, "base_url"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"api_key": "hunter2-caf\u00e9"}, "api_key"),
        ({"api_key": "hunter2\nX-Other: y"}, "api_key"),
        ({"default_headers": {"X-Team": "hunter2\u2026"}}, "X-Team"),
        ({"default_headers": {"X-Team": "hunter2\r\nX-Other: y"}}, "X-Team"),
        ({"default_headers": {"X Team": "hunter2"}}, "default_headers"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, words):
    with pytest.raises(ValidationError) as caught:
        OpenAICompatibleChat(model="m", **options)
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_an_entry_of_the_configuration_keeps_its_keys_when_only_its_use_changes():
    entry = ModelConfig(
        name="gpt",
        use="engine.models.openai_compatible:OpenAICompatibleChat",
        model="gpt-x",
        api_key="$KEY",
        base_url="https://llm.example.com/v1",
        temperature=0.3,
        max_tokens=99,
        timeout_seconds=7,
        extra_body={"seed": 5},
    )
    chat = ModelRegistry([entry], {"KEY": "sk-1"}).chat_model("gpt")
    assert (chat.model, chat.temperature, chat.max_tokens, chat.timeout_seconds) == ("gpt-x", 0.3, 99, 7)
    assert (chat.api_key.get_secret_value(), chat.max_retries, chat.stream_usage) == ("sk-1", 0, True)
    refused = ModelRegistry([entry.model_copy(update={"temperature": "hot"})], {"KEY": "sk-1"})
    with pytest.raises(ModelUnavailable, match="temperature"):
        refused.chat_model("gpt")


async def test_answers_of_a_schema_are_asked_for_as_a_call(scripted_model):
    class Verdict(BaseModel):
        """A verdict."""

        score: int

    scripted_model.replies([Reply(calls=(ToolCall(name="Verdict", arguments={"score": 7}),))])
    async with thin(scripted_model) as chat:
        assert await chat.with_structured_output(Verdict).ainvoke(HELLO) == Verdict(score=7)
    assert scripted_model.requests[0].body["tool_choice"] == "required"


def test_a_caller_without_a_loop_is_answered_too(scripted_model):
    scripted_model.replies(["plain"])
    assert OpenAICompatibleChat(model="m", base_url=scripted_model.url).invoke(HELLO).content == "plain"


async def test_a_caller_that_blocks_its_loop_is_answered_too(scripted_model):
    scripted_model.replies(["plain"])
    assert OpenAICompatibleChat(model="m", base_url=scripted_model.url).invoke(HELLO).content == "plain"
