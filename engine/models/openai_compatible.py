"""A thin chat model for servers that speak OpenAI's chat completions: the same answers for a fraction of the CPU."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, field_validator
from yarl import URL

from engine.config.fields import is_header_name, is_header_value
from engine.errors import EngineError, StreamCut
from engine.middleware.model_stream import with_strict_arguments
from engine.models.openai_compatible_events import payloads, read_at_most
from engine.models.openai_compatible_http import ModelServer
from engine.models.openai_compatible_reply import DONE, ReplyReader
from engine.models.openai_compatible_wire import encode, request_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.runnables import Runnable

OPENAI_URL: Final = "https://api.openai.com/v1"
MAX_TOOL_SETS: Final = 64


class OpenAICompatibleChat(BaseChatModel):
    """Chat completions of one model on one server.

    Takes ChatOpenAI's names for what both have, so that an entry of config.yaml changes only its `use`. What
    has no field here goes into `extra_body`; an unknown option is refused. `timeout_seconds` bounds the silence
    before and within an answer, not the answer's length. Close it with `aclose` on the loop that used it.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    model: str
    api_key: SecretStr | None = None
    base_url: str = OPENAI_URL
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_seconds: float = Field(default=120, gt=0)
    max_retries: int = Field(default=2, ge=0, le=10)
    stream_usage: bool = True  # some servers refuse the request for it
    default_headers: dict[str, SecretStr] = Field(default_factory=dict)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    _server: ModelServer = PrivateAttr()
    _tool_sets: OrderedDict[tuple[object, ...], tuple[Sequence[Any], list[dict[str, Any]]]] = PrivateAttr(
        default_factory=OrderedDict
    )

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, base_url: str) -> str:
        url = URL(base_url)
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError("expected an address that begins with http:// or https://")
        if url.user or url.password:
            raise ValueError("a name or password belongs into api_key or default_headers")
        return base_url

    @field_validator("api_key")
    @classmethod
    def _can_be_sent(cls, api_key: SecretStr | None) -> SecretStr | None:
        if api_key and not is_header_value(api_key.get_secret_value().strip()):
            raise ValueError("it holds characters that no HTTP header can carry")
        return api_key

    @field_validator("default_headers")
    @classmethod
    def _can_be_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if not is_header_name(name):
                raise ValueError("a header's name may hold only letters, digits and hyphens")
            if not is_header_value(value.get_secret_value().strip()):
                raise ValueError(f"the value of {name} holds characters that no HTTP header can carry")
        return headers

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        headers = {name: value.get_secret_value().strip() for name, value in self.default_headers.items()}
        key = self.api_key.get_secret_value().strip() if self.api_key else ""
        base, mark, query = self.base_url.partition("?")
        self._server = ModelServer(
            f"{base.rstrip('/')}/chat/completions{mark}{query}",
            ({"Authorization": f"Bearer {key}"} if key else {}) | headers,
            secrets=(key, *headers.values()),
            timeout_seconds=self.timeout_seconds,
            max_retries=self.max_retries,
        )

    @property
    def _llm_type(self) -> str:
        return "openai-compatible-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "base_url": self.base_url,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            **self.extra_body,
        }

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._server.aclose()

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, strict: bool | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Offer tools. `tool_choice`: "auto", "none", "any" or "required", True, a tool's name, or OpenAI's object."""
        described = self._described(tools, strict)
        choice = _tool_choice(tool_choice, [one.get("function", {}).get("name") for one in described])
        return self.bind(tools=described, **kwargs, **({"tool_choice": choice} if choice else {}))

    def _described(self, tools: Sequence[Any], strict: bool | None) -> list[dict[str, Any]]:
        key = (strict, *map(id, tools))
        if key not in self._tool_sets:
            # The tools are kept with the entry: an id is only theirs while they live.
            self._tool_sets[key] = (tuple(tools), [convert_to_openai_tool(one, strict=strict) for one in tools])
        self._tool_sets.move_to_end(key)
        if len(self._tool_sets) > MAX_TOOL_SETS:
            self._tool_sets.popitem(last=False)
        return self._tool_sets[key][1]

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = ReplyReader(self._server.hide)
        async with (
            await self._server.open(self._body(messages, stop, kwargs, stream=True)) as response,
            aclosing(payloads(response)) as reads,
        ):
            async for events in reads:
                fault = _read_all(reply, events)
                chunk = reply.chunk()
                if chunk:
                    yield ChatGenerationChunk(message=chunk)
                if fault:
                    raise fault
        _require_finish(reply)
        if not reply.done:
            reply.read(DONE)
            last = reply.chunk()
            assert last is not None
            yield ChatGenerationChunk(message=last)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = ReplyReader(self._server.hide)
        async with await self._server.open(self._body(messages, stop, kwargs, stream=False)) as response:
            reply.read(await read_at_most(response))
        _require_finish(reply)
        reply.read(DONE)
        whole = reply.chunk()
        assert whole is not None
        message = message_chunk_to_message(whole)
        assert isinstance(message, AIMessage)
        return ChatResult(generations=[ChatGeneration(message=with_strict_arguments(message, whole.tool_call_chunks))])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """For callers without a loop, or that block theirs: on a loop and connections of its own."""

        async def once() -> ChatResult:
            try:
                return await self._agenerate(messages, stop, **kwargs)
            finally:
                await self.aclose()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, once()).result()

    def _body(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: dict[str, Any], *, stream: bool
    ) -> bytes:
        body: dict[str, Any] = {"model": self.model, "messages": [request_message(one) for one in messages]}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            # OpenAI refuses the old name for its newer models; other servers mostly know no other.
            of_openai = self.base_url.startswith(OPENAI_URL)
            body["max_completion_tokens" if of_openai else "max_tokens"] = self.max_tokens
        if stop:
            body["stop"] = stop
        body |= self.extra_body | options
        if stream:
            body["stream"] = True
            if self.stream_usage:
                body.setdefault("stream_options", {"include_usage": True})
        return encode(body)


def _read_all(reply: ReplyReader, events: Sequence[bytes]) -> EngineError | None:
    """Take the events of one read, and say what is wrong with one: what came before it is part of the answer."""
    try:
        for event in events:
            reply.read(event)
        if reply.done:
            _require_finish(reply)
    except EngineError as fault:
        return fault
    return None


def _require_finish(reply: ReplyReader) -> None:
    if not reply.finish_reason:
        raise StreamCut("the model's answer was closed before it was finished")


def _tool_choice(choice: Any, names: Sequence[str | None]) -> Any:
    """OpenAI's form of a choice; None leaves it to the server."""
    if choice in (None, False, ""):
        return None
    if choice in (True, "any"):
        return "required"
    return {"type": "function", "function": {"name": choice}} if choice in names else choice
