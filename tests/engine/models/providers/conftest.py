from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.engine.models.providers.dialects import Asked

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def provider_server():
    """`async with provider_server(answer) as (url, asked)`: `answer` gives bytes, or (status, bytes, headers)."""

    @asynccontextmanager
    async def serving(answer: Callable[[Asked], bytes | tuple[int, bytes, dict[str, str]]]):
        asked: list[Asked] = []

        async def handle(request: web.Request) -> web.Response:
            headers = {name.lower(): value for name, value in request.headers.items()}
            one = Asked(request.path, headers, await request.json())
            asked.append(one)
            given = answer(one)
            status, body, more = given if isinstance(given, tuple) else (200, given, {})
            ndjson = request.path.startswith("/api/")
            kind = "application/x-ndjson" if ndjson else "text/event-stream"
            return web.Response(status=status, body=body, headers={"Content-Type": kind, **more})

        application = web.Application()
        application.router.add_post("/{path:.*}", handle)
        async with TestServer(application) as server:
            yield str(server.make_url("")).rstrip("/"), asked

    return serving
