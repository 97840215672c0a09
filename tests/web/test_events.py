from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from runs.event_types import Delta
from runs.web import events
from tests.web.conftest import BACKEND

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("following")]


async def test_a_page_without_sockets_gets_the_same_frames(async_browser, log):
    run = await sync_to_async(log.run)()
    await sync_to_async(log.message)(run.pk, {"type": "human", "content": "Hello"})
    await sync_to_async(log.fact)(run.pk, Delta(id="m", text="Wor"))
    await sync_to_async(log.fact)(run.pk, Delta(id="m", text="ld"))
    answer = (await async_browser.get(f"/chat/{log.thread.pk}/events?after=0")).json()
    assert [(f["seq"], f["type"]) for f in answer["frames"]] == [(1, "message"), (3, "delta")]
    assert answer["frames"][1]["open_html"] == "<p>World</p>\n"
    assert answer["next"] == 3


async def test_each_answer_carries_the_whole_of_an_unfinished_reply(async_browser, log):
    run = await sync_to_async(log.run)()
    after = await sync_to_async(log.fact)(run.pk, Delta(id="m", text="One "))
    await sync_to_async(log.fact)(run.pk, Delta(id="m", text="two"))
    answer = (await async_browser.get(f"/chat/{log.thread.pk}/events?after={after}")).json()
    assert [f["open_html"] for f in answer["frames"]] == ["<p>One two</p>\n"]


async def test_with_nothing_new_the_answer_is_empty_and_the_cursor_stays(async_browser, log, monkeypatch):
    monkeypatch.setattr(events, "WAIT_SECONDS", 0.05)
    answer = await async_browser.get(f"/chat/{log.thread.pk}/events?after=4")
    assert answer.json() == {"frames": [], "next": 4}
    assert answer.headers["Cache-Control"] == "no-store"


async def test_without_waiting_the_answer_comes_at_once(async_browser, log):
    run = await sync_to_async(log.run)()
    await sync_to_async(log.message)(run.pk, {"type": "human", "content": "Hello"})
    answers = [
        (await async_browser.get(f"/chat/{log.thread.pk}/events?after={after}&wait=0")).json() for after in (0, 1)
    ]
    assert [len(answer["frames"]) for answer in answers] == [1, 0]


async def test_only_the_owner_may_ask(log, stranger):
    client = AsyncClient()
    assert (await client.get(f"/chat/{log.thread.pk}/events")).status_code == 401
    await sync_to_async(client.force_login)(stranger, backend=BACKEND)
    assert (await client.get(f"/chat/{log.thread.pk}/events")).status_code == 404
