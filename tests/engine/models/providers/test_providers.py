"""Every provider that docs/models.md walks through, with its real package against a server that speaks its dialect.

An agent thinks, calls a tool, and answers; what the server is asked and what is stored are looked at.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from engine.agent import Step, build, drive
from engine.config.schema import ModelConfig
from engine.errors import explain_model_error
from engine.models.registry import ModelRegistry
from engine.usage import usage_of
from engine.wire import from_wire, to_wire
from tests.engine.fakes import echo, run_context
from tests.engine.models.providers import dialects
from tests.engine.models.providers.dialects import ANSWER, THOUGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

# google-genai's own HTTP client, at import and use.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Provider:
    use: str
    dialect: Callable[[dialects.Asked], bytes]
    path: str  # what the package asks below base_url
    entry: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""  # of base_url, as the provider's own address has it
    key_header: str | None = "authorization"
    reports_cached: bool = True
    shows_thought: bool = True
    thought_sent_back: str = THOUGHT  # what shows in the second request that it holds the reasoning; "": never


PROVIDERS = {
    "openai": Provider(
        "langchain_openai:ChatOpenAI", dialects.openai, "/v1/chat/completions", prefix="/v1",
        shows_thought=False, thought_sent_back="",
    ),
    "anthropic": Provider(
        "langchain_anthropic:ChatAnthropic", dialects.anthropic, "/v1/messages",
        entry={"max_tokens": 8192, "thinking": {"type": "enabled", "budget_tokens": 2048}},
    ),
    "google": Provider(
        "langchain_google_genai:ChatGoogleGenerativeAI", dialects.google,
        "/v1/models/test-model:streamGenerateContent", key_header="x-goog-api-key",
        entry={"include_thoughts": True}, thought_sent_back=dialects.SIGNATURE,
    ),
    "deepseek": Provider("langchain_deepseek:ChatDeepSeek", dialects.deepseek, "/chat/completions"),
    "qwen": Provider(
        "langchain_openai:ChatOpenAI", dialects.deepseek, "/compatible-mode/v1/chat/completions",
        prefix="/compatible-mode/v1", entry={"extra_body": {"enable_thinking": True}},
    ),
    "ollama": Provider(
        "langchain_ollama:ChatOllama", dialects.ollama, "/api/chat", entry={"reasoning": True}, key_header=None,
        reports_cached=False,
    ),
    "vllm": Provider(
        "langchain_openai:ChatOpenAI", dialects.vllm, "/v1/chat/completions", prefix="/v1",
        entry={"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}},
    ),
    "compatible": Provider(
        "engine.models.openai_compatible:OpenAICompatibleChat", dialects.vllm, "/v1/chat/completions", prefix="/v1",
    ),
}  # fmt: skip


@pytest.fixture(params=PROVIDERS)
def provider(request):
    return PROVIDERS[request.param]


def registry(provider: Provider, url: str, **changes: Any) -> ModelRegistry:
    fields: dict[str, Any] = {
        "name": "tried", "use": provider.use, "model": "test-model", "base_url": url + provider.prefix,
        "max_retries": 0, **provider.entry,
    }  # fmt: skip
    if provider.key_header:
        fields["api_key"] = KEY
    return ModelRegistry([ModelConfig(**(fields | changes))], {})


async def run(models: ModelRegistry, before: Sequence[BaseMessage] = ()) -> list[AIMessage]:
    (name,) = models.names()
    agent = build(models.chat_model(name), [echo], is_subagent=True, gate=models.gate(name))
    try:
        steps = [
            one
            async for one in drive(agent, [*before, HumanMessage("Go.")], run_context(is_subagent=True))
            if isinstance(one, Step)
        ]
    finally:
        await models.aclose()
    return [message for step in steps for message in step.messages if isinstance(message, AIMessage)]


async def test_an_agent_thinks_calls_a_tool_and_answers(provider, provider_server):
    async with provider_server(provider.dialect) as (url, asked):
        first, last = await run(registry(provider, url))
    assert [(call["name"], call["args"]) for call in first.tool_calls] == [("echo", dialects.ARGUMENTS)]
    assert last.text == ANSWER
    assert [one.path for one in asked] == [provider.path] * 2
    assert "echo" in asked[0].text
    if provider.key_header:
        assert KEY in asked[0].headers[provider.key_header]


async def test_usage_and_what_came_from_the_cache_are_kept(provider, provider_server):
    async with provider_server(provider.dialect) as (url, _asked):
        (first, last) = (from_wire(to_wire(message)) for message in await run(registry(provider, url)))
    for message in (first, last):
        usage = usage_of(message)
        assert (usage.input_tokens, usage.output_tokens) == (100, 7)
        assert usage.cached_tokens == (60 if provider.reports_cached else None)
        assert not usage.estimated


async def test_reasoning_is_stored_beside_the_answer_and_is_no_part_of_it(provider, provider_server):
    async with provider_server(provider.dialect) as (url, _asked):
        first, last = await run(registry(provider, url))
    stored = str(to_wire(first))
    assert (THOUGHT in stored) == provider.shows_thought
    assert THOUGHT not in first.text + last.text


async def test_reasoning_goes_back_to_the_model_that_wrote_it(provider, provider_server):
    async with provider_server(provider.dialect) as (url, asked):
        await run(registry(provider, url))
    if provider.thought_sent_back:
        assert provider.thought_sent_back in asked[1].text
    else:
        assert THOUGHT not in asked[1].text


@pytest.mark.parametrize("name", [name for name, provider in PROVIDERS.items() if provider.thought_sent_back])
async def test_a_server_that_wants_its_reasoning_back_gets_it_and_no_other_sees_it(name, provider_server):
    """The server of the first model refuses, as some do, a turn with calls that comes without its reasoning."""
    provider = PROVIDERS[name]

    def strict(asked):
        if dialects.answered(asked) and provider.thought_sent_back not in asked.text:
            return 400, b'{"error": {"message": "reasoning must be passed back"}}', {}
        return provider.dialect(asked)

    async with provider_server(strict) as (url, asked):
        calls, result = await turn_with_tool(registry(provider, url))
        again = await run(registry(provider, url), before=[calls, result])
        assert again[-1].text == ANSWER
        assert provider.thought_sent_back in asked[-1].text
    for other in ("compatible", "deepseek", "anthropic"):
        async with provider_server(PROVIDERS[other].dialect) as (url, asked):
            await run(registry(PROVIDERS[other], url, name="another"), before=[calls, result])
        assert len(asked) == 1
        assert THOUGHT not in asked[0].text
        assert dialects.SIGNATURE not in asked[0].text


async def turn_with_tool(models: ModelRegistry) -> tuple[BaseMessage, BaseMessage]:
    """A stored reply that calls the tool, and the result, as a later run reads them."""
    agent = build(models.chat_model("tried"), [echo], is_subagent=True, gate=models.gate("tried"))
    found: list[BaseMessage] = []
    try:
        async for one in drive(agent, [HumanMessage("Go.")], run_context(is_subagent=True)):
            found += one.messages if isinstance(one, Step) else []
    finally:
        await models.aclose()
    calls, result, _answer = (from_wire(to_wire(message)) for message in found)
    return calls, result


async def test_what_the_server_says_against_a_request_reaches_the_reader(provider, provider_server):
    said = "valid range of max_tokens is [1, 8192]"
    inner: object = {"type": "invalid_request_error", "message": said, "code": 400, "status": "INVALID_ARGUMENT"}
    body = json.dumps({"error": said if provider.use.endswith("Ollama") else inner}).encode()
    async with provider_server(lambda _asked: (400, body, {"Content-Type": "application/json"})) as (url, _asked):
        with pytest.raises(Exception) as caught:
            await run(registry(provider, url))
    fault = explain_model_error(caught.value)
    assert fault.code == "model_bad_request"
    assert said in str(fault.sentence)


async def test_a_refused_key_and_a_busy_server_are_told_apart(provider, provider_server):
    statuses = {401: "model_refused_key", 429: "model_rate_limited"}
    for status, code in statuses.items():
        body = b'{"error": {"type": "e", "message": "not today", "code": %d, "status": "E"}}' % status

        def refuse(_asked, status=status, body=body):
            return status, body, {"Content-Type": "application/json"}

        async with provider_server(refuse) as (url, asked):
            with pytest.raises(Exception) as caught:
                await run(registry(provider, url))
        assert explain_model_error(caught.value).code == code
        assert len(asked) == 1, "the gate alone asks again"
