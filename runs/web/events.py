"""The log of a thread over plain HTTP, for pages whose sockets are blocked: long polling, the same frames."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import orjson
from channels.db import database_sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import translation
from django.views.decorators.http import require_GET

from runs import log
from runs.relay import relay
from runs.web.answers import no_such_thread, signed_out
from runs.web.frames import Feed, Row
from runs.web.resume import cursor_of, may_read, open_reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

WAIT_SECONDS = 20.0


@require_GET
async def events(request: HttpRequest, thread_id: UUID) -> HttpResponseBase:
    """Frames past `after`, as soon as there are any and at the latest after 20 s; `next` is the next `after`.

    With `wait=0` at once: how a page finds out whether anybody is there.
    """
    user = await request.auser()
    if not user.is_authenticated:
        return signed_out()
    if not await database_sync_to_async(may_read)(user, thread_id):
        return no_such_thread()
    after = cursor_of(request.META.get("QUERY_STRING", ""))
    if request.GET.get("wait") == "0":
        rows: Sequence[Row] = await database_sync_to_async(log.read)(thread_id, after)
    else:
        rows = await _next_rows(thread_id, after)
    if rows and not await database_sync_to_async(may_read)(user, thread_id):
        return no_such_thread()
    seen = await database_sync_to_async(open_reply)(thread_id, after) if rows else []
    feed = Feed(translation.get_language() or "en")
    # Each answer stands for itself: nothing is held back for a later one.
    frames = await asyncio.to_thread(lambda: [*feed.take([*seen, *rows], now=0.0), *feed.flush(now=time.monotonic())])
    content = orjson.dumps({"frames": frames, "next": rows[-1].seq if rows else after})
    return HttpResponse(content, content_type="application/json", headers={"Cache-Control": "no-store"})


async def _next_rows(thread_id: UUID, after: int) -> Sequence[Row]:
    following: AsyncIterator[Sequence[Row]] = relay().follow(thread_id, after)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            # The first batch may be empty: it is what was left of replies that are stored whole.
            async for rows in following:
                if rows:
                    return rows
            return []
    except TimeoutError:
        return []
    finally:
        await following.aclose()  # type: ignore[attr-defined]
