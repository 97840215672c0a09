from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from runs import consumers
from runs.event_types import Delta, RunEnded, RunStarted
from runs.routing import websocket_urlpatterns
from runs.web import resume
from tests.patience import PATIENCE_SECONDS
from tests.web.browsing import BACKEND
from tests.web.log_writer import LogWriter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("following")]


class Socket:
    """A browser's end of a thread's socket."""

    def __init__(self, user: Any, thread_id: Any, query: str, session: Any) -> None:
        scope = {
            "type": "websocket", "path": f"/ws/threads/{thread_id}/", "query_string": query.encode("latin-1"),
            "headers": [], "subprotocols": [], "user": user, "session": session,
        }  # fmt: skip
        self.wire = ApplicationCommunicator(URLRouter(websocket_urlpatterns), scope)

    async def next(self) -> dict[str, Any]:
        return dict(await self.wire.receive_output(timeout=PATIENCE_SECONDS))

    async def frames(self, until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while not found or not until(found[-1]):
            message = await self.next()
            assert message["type"] == "websocket.send", message
            found.append(orjson.loads(message["text"]))
        return found

    async def send(self, **message: Any) -> None:
        await self.wire.send_input({"type": "websocket.receive", **message})


def session_of(user: Any) -> Any:
    client = Client()
    if user.is_authenticated:
        client.force_login(user, backend=BACKEND)
    return client.session


@asynccontextmanager
async def socket(user: Any, thread_id: Any, query: str = "after=0", *, session: Any = None) -> AsyncIterator[Socket]:
    end = Socket(user, thread_id, query, session or await sync_to_async(session_of)(user))
    await end.wire.send_input({"type": "websocket.connect"})
    assert (await end.next())["type"] == "websocket.accept"
    try:
        yield end
    finally:
        await end.wire.send_input({"type": "websocket.disconnect", "code": 1001})
        await end.wire.wait(timeout=PATIENCE_SECONDS)


async def test_a_socket_shows_what_is_stored_and_then_what_comes(lin, log):
    run = await sync_to_async(log.run)()
    await sync_to_async(log.message)(run.pk, {"type": "human", "content": "Hello"})
    async with socket(lin, log.thread.pk) as page:
        assert [f["seq"] for f in await page.frames(lambda f: f["seq"] == 1)] == [1]
        await sync_to_async(log.fact)(run.pk, RunStarted(attempt=1, worker="w"))
        await sync_to_async(log.fact)(run.pk, RunEnded(status="success"))
        assert [f["type"] for f in await page.frames(lambda f: f["seq"] == 3)] == ["run.started", "run.ended"]


async def test_no_name_that_a_person_chose_keeps_a_page_from_being_live(lin):
    name = "研究员 № 1 " * 18
    log = await sync_to_async(LogWriter)(lin, title=name)
    run = await sync_to_async(log.run)(agent=name[:60], definition={"display_name": name})
    async with socket(lin, log.thread.pk) as page:
        await sync_to_async(log.message)(run.pk, {"type": "human", "name": name, "content": name})
        assert (await page.frames(lambda f: True))[0]["text"] == name


async def test_a_socket_resumes_after_the_last_frame_without_gap_or_repetition(lin, log):
    run = await sync_to_async(log.run)()
    for number in range(8):
        await sync_to_async(log.message)(run.pk, {"type": "human", "content": str(number)})
    async with socket(lin, log.thread.pk, "after=5") as page:
        assert [f["seq"] for f in await page.frames(lambda f: f["seq"] == 8)] == [6, 7, 8]


async def test_a_reply_in_progress_ends_as_its_whole_text_even_after_a_drop(lin, log):
    run = await sync_to_async(log.run)()
    for word in ("One ", "two "):
        after = await sync_to_async(log.fact)(run.pk, Delta(id="m", text=word))
    async with socket(lin, log.thread.pk, f"after={after}") as page:
        (seen,) = await page.frames(lambda f: f["type"] == "delta")
        assert seen["open_html"] == "<p>One two</p>\n"
        await sync_to_async(log.fact)(run.pk, Delta(id="m", text="three"))
        # Nothing else comes: what was held back has to come by itself.
        *_, last = await page.frames(lambda f: "three" in f.get("open_html", ""))
        assert (last["open_html"], last["seq"]) == ("<p>One two three</p>\n", after + 1)


async def closed_with(user: Any, thread_id: Any) -> tuple[int, str]:
    async with socket(user, thread_id) as page:
        message = await page.next()
    assert message["type"] == "websocket.close"
    return message["code"], message["reason"]


async def test_without_a_session_the_socket_closes_with_a_reason(log):
    assert await closed_with(AnonymousUser(), log.thread.pk) == (4401, "not signed in")


async def test_the_thread_of_another_person_and_one_that_is_not_there_close_alike(log, stranger):
    assert await closed_with(stranger, log.thread.pk) == (4404, "no such thread")
    assert await closed_with(stranger, uuid4()) == (4404, "no such thread")


async def test_a_person_who_may_no_longer_read_gets_nothing_more(lin, log, monkeypatch):
    monkeypatch.setattr(resume, "ACCESS_SECONDS", 0.0)
    run = await sync_to_async(log.run)()
    async with socket(lin, log.thread.pk) as page:
        await sync_to_async(type(lin).objects.filter(pk=lin.pk).update)(is_active=False)
        await sync_to_async(log.message)(run.pk, {"type": "human", "content": "secret"})
        message = await page.next()
        assert (message["type"], message["code"]) == ("websocket.close", 4403)


async def test_an_idle_socket_closes_too_when_its_person_is_deactivated(lin, log, monkeypatch):
    monkeypatch.setattr(resume, "ACCESS_SECONDS", 0.0)
    monkeypatch.setattr(consumers, "WATCH_SECONDS", 0.05)
    async with socket(lin, log.thread.pk) as page:
        await sync_to_async(type(lin).objects.filter(pk=lin.pk).update)(is_active=False)
        assert (await page.next())["code"] == 4403


def log_out(client: Client, _user: Any) -> None:
    client.logout()


def change_password(_client: Client, user: Any) -> None:
    user.set_password("another one")
    user.save()


@pytest.mark.parametrize("end", [log_out, change_password])
async def test_an_idle_socket_closes_too_when_the_session_it_was_opened_with_is_over(
    browser, lin, log, monkeypatch, end
):
    monkeypatch.setattr(consumers, "WATCH_SECONDS", 0.05)
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()

    def look(*asked: Any) -> bool:
        loop.call_soon_threadsafe(seen.set)
        return resume.still_signed_in(*asked)

    monkeypatch.setattr(consumers, "still_signed_in", look)
    async with socket(lin, log.thread.pk, session=browser.session) as page:
        await asyncio.wait_for(seen.wait(), PATIENCE_SECONDS)
        run = await sync_to_async(log.run)()
        await sync_to_async(log.message)(run.pk, {"type": "human", "content": "Hello"})
        await page.frames(lambda f: f["type"] == "message")  # while the session holds, the socket stays
        await sync_to_async(end)(browser, lin)
        assert await page.next() == {"type": "websocket.close", "code": 4400, "reason": "the session is over"}


@pytest.mark.parametrize("query", ["", "after=x", "after=-3", "after=%00", "after=\xff", "after=" + "9" * 400])
async def test_an_odd_cursor_is_no_reason_to_fail(lin, log, query):
    await sync_to_async(log.message)((await sync_to_async(log.run)()).pk, {"type": "human", "content": "x"})
    async with socket(lin, log.thread.pk, query) as page:
        assert (await page.frames(lambda f: True))[0]["seq"] == 1


async def test_whatever_a_browser_sends_is_ignored(lin, log):
    run = await sync_to_async(log.run)()
    async with socket(lin, log.thread.pk) as page:
        for message in (
            {"text": "{"},
            {"text": "x" * 1_000_000},
            {"bytes": b"\x00\xff"},
            {"text": '{"type": "cancel"}'},
            {},
        ):
            await page.send(**message)
        await sync_to_async(log.message)(run.pk, {"type": "human", "content": "still here"})
        assert (await page.frames(lambda f: True))[0]["text"] == "still here"


async def test_a_thread_that_is_deleted_while_it_is_watched_harms_nobody(lin, log, monkeypatch):
    monkeypatch.setattr(resume, "ACCESS_SECONDS", 0.0)
    monkeypatch.setattr(consumers, "WATCH_SECONDS", 0.05)
    async with socket(lin, log.thread.pk) as page:
        await sync_to_async(log.thread.delete)()
        assert (await page.next())["code"] == 4403


async def test_a_socket_closes_when_the_server_stops_so_that_its_page_comes_back(lin, log, following):
    run = await sync_to_async(log.run)()
    async with socket(lin, log.thread.pk) as page:
        await sync_to_async(log.message)(run.pk, {"type": "human", "content": "x"})
        await page.frames(lambda f: True)
        await following.stop()
        message = await page.next()
        assert (message["type"], message["code"]) == ("websocket.close", 1012)


async def test_fifty_readers_of_one_thread_all_get_the_whole_reply_in_order(lin, log):
    run = await sync_to_async(log.run)()
    text = "word " * 60

    async def read() -> str:
        async with socket(lin, log.thread.pk) as page:
            frames = await page.frames(lambda f: f["type"] == "message")
        assert [f["seq"] for f in frames] == sorted(f["seq"] for f in frames)
        return str(frames[-1]["html"])

    readers = [asyncio.create_task(read()) for _ in range(50)]
    for start in range(0, len(text), 30):
        await sync_to_async(log.fact)(run.pk, Delta(id="m", text=text[start : start + 30]))
    await sync_to_async(log.message)(run.pk, {"type": "ai", "id": "m", "content": text})
    assert set(await asyncio.gather(*readers)) == {f"<p>{text.strip()}</p>\n"}
