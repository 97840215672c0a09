"""The thin chat model on the scripted server, or on one that answers with any bytes."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

from aiohttp import web
from langchain_core.messages import HumanMessage
from langchain_core.messages.ai import add_ai_message_chunks

from engine.models.openai_compatible import OpenAICompatibleChat

KEY = "sk-live-0123456789abcdef"
HELLO = [HumanMessage("Hello.")]
FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "model": "m"}


@asynccontextmanager
async def thin(model, **options):
    chat = OpenAICompatibleChat(model="scripted", base_url=model.url, api_key=KEY, **options)
    try:
        yield chat
    finally:
        await chat.aclose()


@asynccontextmanager
async def answering(handler, **options):
    """The thin model on a server whose one answer is `handler`'s."""
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    chat = OpenAICompatibleChat(
        model="m", api_key=KEY, base_url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1", **options
    )
    try:
        yield chat
    finally:
        await chat.aclose()
        await runner.cleanup()


def raw(body, *, status=200, content_type="text/event-stream", headers=None):
    async def handler(_request):
        return web.Response(body=body, status=status, content_type=content_type, headers=headers)

    return handler


def stream(*events, done=True):
    parts = [event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() for event in events]
    return b"".join(part + b"\n\n" for part in [*parts, *([b"data: [DONE]"] if done else [])])


def delta(**fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}], "model": "m"}


async def chunks_of(chat, messages=HELLO, **options):
    return [chunk async for chunk in chat.astream(messages, **options)]


async def joined(chat, messages=HELLO, **options):
    chunks = await chunks_of(chat, messages, **options)
    return add_ai_message_chunks(*chunks)


async def read_back(body, **options):
    async with answering(raw(body), **options) as chat:
        return await joined(chat)
