"""The real `ChatOpenAI` on the scripted server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient
from pydantic import SecretStr

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from langchain_core.messages import AIMessageChunk

    from tests.scripted_model.running import ScriptedModel


@asynccontextmanager
async def chat_openai(model: ScriptedModel, **options: Any) -> AsyncIterator[ChatOpenAI]:
    """A chat model with connections of its own, closed at the end.

    Left to itself `ChatOpenAI` shares one client among all event loops of the process, and a test has
    a loop of its own. It also asks for usage only when told to, once it has a `base_url`.
    """
    async with DefaultAsyncHttpxClient(base_url=model.url, trust_env=False) as connections:
        given = {"stream_usage": True, "max_retries": 2, "timeout": 20, **options}
        yield ChatOpenAI(
            model="scripted",
            base_url=model.url,
            api_key=SecretStr("k"),
            http_async_client=connections,
            **given,
        )


async def streamed(chat: Any, messages: Any) -> tuple[list[str], AIMessageChunk]:
    """The non-empty pieces of text in their order, and the whole message."""
    chunks = [chunk async for chunk in chat.astream(messages)]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return [chunk.text for chunk in chunks if chunk.text], whole
