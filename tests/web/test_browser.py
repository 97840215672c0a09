"""The chat page in a real browser against a real server, fed by a log that the test writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from axe_playwright_python.async_playwright import Axe
from django.conf import settings
from playwright.async_api import expect

from runs.event_types import Delta, RunEnded, RunStarted, TaskEnded, TaskStarted, TaskStep
from runs.models import Run, Thread
from tests.web import histories
from tests.web.browsing import opened
from tests.web.log_writer import LogWriter

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
PATIENCE_MS = 20_000  # for a page that waits between attempts, on a busy machine
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


def new_log(owner: Any, **fields: Any) -> LogWriter:
    return LogWriter(owner, at=datetime.now(UTC), **fields)


async def test_a_delegation_is_seen_from_the_question_to_the_answer(tab, owner):
    log = await sync_to_async(new_log)(owner)
    run = await sync_to_async(log.run)()
    page = await opened(tab, log)
    write, say = sync_to_async(log.fact), sync_to_async(log.message)

    await say(run.pk, {"type": "human", "content": "Compare **both** <b>plans</b>"})
    await write(run.pk, RunStarted(attempt=1, worker="w"))
    await expect(page.locator(".msg.user p")).to_have_text("Compare **both** <b>plans</b>")
    await expect(page.locator(".working")).to_have_text("Working")

    await write(run.pk, Delta(id="a1", text="I split *this*"))
    await expect(page.locator(".prose.streaming em")).to_have_text("this")
    call = {"id": "c1", "name": "task", "args": {"description": "Read plan A"}}
    await say(run.pk, {"type": "ai", "id": "a1", "content": "I split *this*.", "tool_calls": [call]})
    task = await sync_to_async(histories.task)(log, run.pk, "c1", "coder", "Coder", "Read plan A")
    card = page.locator("article.task")
    await expect(card.locator(".st")).to_have_text("Queued")
    await write(run.pk, TaskStarted(task=task, attempt=1, worker="w:2"))
    await write(
        run.pk, TaskStep(task=task, turn=3, kind="tool", call="x", tool="read_file", text="plan-a.md", total_tokens=700)
    )
    await expect(card.locator(".st")).to_have_text("Running")
    await expect(card.locator(".now .tool")).to_have_text("read_file")
    await expect(card.locator(".facts")).to_contain_text("turn 3 / 50")
    await expect(page.locator(".strip [data-part=what]")).to_have_text("1 task running")
    await expect(page.locator(".prose.streaming")).to_have_count(0)

    await write(run.pk, TaskEnded(task=task, status="success", result="Plan **A** wins.", model_calls=4, seconds=2.0))
    await expect(card.locator(".st")).to_have_text("Done")
    await expect(page.locator("[data-part=announce]")).to_have_text("Coder, Read plan A: Done")
    await card.get_by_role("button").click()
    await expect(card.locator(".res strong")).to_have_text("A")
    await say(run.pk, {"type": "ai", "id": "a2", "content": "A."})
    await write(run.pk, RunEnded(status="success", total_tokens=300))
    await expect(page.locator(".strip")).to_be_hidden()
    await expect(page.locator(".group .gh")).to_contain_text("1 done")
    await expect(page.locator("[data-part=announce]")).to_have_text("The answer is finished.")


async def test_a_page_that_lost_its_server_says_so_and_misses_nothing(tab, owner, server):
    log = await sync_to_async(new_log)(owner)
    run = await sync_to_async(log.run)()
    await sync_to_async(log.message)(run.pk, {"type": "human", "content": "0"})
    await sync_to_async(log.fact)(run.pk, Delta(id="a", text="Half of"))
    page = await opened(tab, log)
    await expect(page.locator(".prose.streaming")).to_contain_text("Half of")
    await sync_to_async(server.stop)()
    await expect(page.locator("[data-part=banner]")).to_have_text("Reconnecting, nothing is lost.", timeout=PATIENCE_MS)
    await sync_to_async(log.fact)(run.pk, Delta(id="a", text=" the answer"))
    await sync_to_async(server.start)()
    await expect(page.locator(".prose.streaming")).to_have_text("Half of the answer", timeout=PATIENCE_MS)
    await expect(page.locator("[data-part=banner]")).to_be_hidden(timeout=PATIENCE_MS)
    await sync_to_async(log.message)(run.pk, {"type": "ai", "id": "a", "content": "Half of the answer."})
    await sync_to_async(log.message)(run.pk, {"type": "human", "content": "1"})
    await expect(page.locator(".msg.user p")).to_have_text(["0", "1"])
    await expect(page.locator(".msg.ai .prose")).to_have_text(["Half of the answer."])


async def test_a_page_whose_sockets_are_blocked_polls_instead(tab, owner):
    log = await sync_to_async(new_log)(owner)
    run = await sync_to_async(log.run)()
    page = await tab.new_page()
    await page.add_init_script(
        "window.WebSocket = class { constructor() { setTimeout(() => this.onclose({ code: 1006 }), 1); } };"
    )
    await page.goto(f"/chat/{log.thread.pk}/")
    await sync_to_async(log.message)(run.pk, {"type": "human", "content": "first"})
    await expect(page.locator(".msg.user p")).to_have_text("first")
    await expect(page.locator("[data-part=banner]")).to_contain_text("Live connection blocked", timeout=PATIENCE_MS)
    await sync_to_async(log.message)(run.pk, {"type": "human", "content": "second"})
    await expect(page.locator(".msg.user p")).to_have_text(["first", "second"])


async def test_every_ending_is_told_in_words(tab, owner):
    log = await sync_to_async(histories.endings)(owner, at=datetime.now(UTC) - timedelta(hours=1))
    page = await opened(tab, log)
    words = ["Done", "Done, cut short", "Timed out", "Cancelled by lin", "Failed"]
    await expect(page.locator("article.task .st")).to_have_text(words)
    await expect(page.locator(".why")).to_contain_text(
        ["", "token budget", "Ran longer than 300 s", "Cancelled by lin", "could not be reached"]
    )
    await expect(page.locator(".lead-steps li")).to_contain_text(["Not started: at most 4", "notes/plan.md"])
    await expect(page.locator(".group .gh")).to_contain_text("4 ended early")
    await expect(page.locator(".prose table td")).to_have_count(8)


async def test_words_of_models_reach_the_page_as_words(tab, owner):
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    log = await sync_to_async(new_log)(owner, title=evil)
    run = await sync_to_async(log.run)()
    say, write = sync_to_async(log.message), sync_to_async(log.fact)
    await say(run.pk, {"type": "human", "content": evil})
    await say(
        run.pk,
        {
            "type": "ai",
            "content": evil,
            "tool_calls": [{"id": "c", "name": evil, "args": {"path": evil}}, {"id": "t", "name": "task", "args": {}}],
        },
    )
    task = await sync_to_async(histories.task)(log, run.pk, "t", evil, evil, evil)
    await write(run.pk, TaskStep(task=task, turn=1, kind="tool", tool=evil, text=evil))
    await write(run.pk, TaskEnded(task=task, status="error", error=evil, why=evil, result=evil))
    await write(run.pk, RunEnded(status="error", error=evil, why=evil + "."))
    page = await opened(tab, log)
    await expect(page.locator(".ending")).to_contain_text("onerror")
    await page.locator("article.task header button:visible").click()
    assert await page.locator("main img, main script").count() == 0
    assert "owned" not in (await page.title()).replace("='owned'", "")


async def test_enter_sends_and_what_waits_can_be_taken_back(tab, owner):
    page = await opened(tab)
    box = page.get_by_label("Message", exact=True)
    await box.fill("First line")
    await box.press("Shift+Enter")
    await box.type("second line")
    await page.locator("label.switch").click()
    await box.press("Enter")
    await page.wait_for_url("**/chat/*-*/")
    await expect(page.locator(".msg.user p")).to_have_text("First line\nsecond line")
    await expect(page.locator(".strip [data-part=what]")).to_have_text("Waiting for a free worker")
    await expect(page.locator("[data-part=delegation]")).not_to_be_checked()
    options = await sync_to_async(lambda: Run.objects.get().options)()
    assert options == {"subagent_enabled": False, "agent_name": "lead_agent"}

    await page.get_by_label("Message", exact=True).fill("And then?")
    await page.keyboard.press("Enter")
    waiting = page.locator(".msg.waiting")
    await expect(waiting).to_contain_text("Queued behind the running answer")
    await expect(page.get_by_label("Message", exact=True)).to_have_value("")
    await waiting.get_by_role("button", name="Remove").click()
    await expect(waiting).to_have_count(0)
    await expect(page.locator(".evt")).to_have_text("Taken out of the queue")
    await page.get_by_role("button", name="Stop all").click()
    await expect(page.locator(".ending")).to_contain_text("Cancelled by lin")
    await expect(page.locator(".strip")).to_be_hidden()


async def test_nothing_typed_is_lost_when_it_cannot_be_sent(tab, owner, server):
    log = await sync_to_async(new_log)(owner)
    page = await opened(tab, log)
    box = page.get_by_label("Message", exact=True)
    await box.press("Enter")
    await expect(page.locator("#say-fault")).to_have_text("Write a message first.")
    await box.fill("x" * 200_001)
    await box.press("Enter")
    await expect(page.locator("#say-fault")).to_contain_text("200,001 characters; 200,000 are allowed")
    await box.fill("Precious")
    # An input method that is composing uses Enter to choose a word.
    await box.dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    assert await sync_to_async(Run.objects.count)() == 0
    await tab.route("**/messages", lambda route: route.abort())
    await box.press("Enter")
    await expect(page.locator("#say-fault")).to_have_text("Not sent. Your text is still here; try again.")
    await expect(box).to_have_value("Precious")
    await page.reload()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("Precious")


async def test_on_a_phone_the_conversations_are_a_drawer_that_keys_can_use(tab, owner):
    log = await sync_to_async(histories.working)(owner, at=datetime.now(UTC) - timedelta(seconds=112))
    await Thread.objects.filter(pk=log.thread.pk).aupdate(title="A title far longer than any phone is wide, " * 3)
    page = await opened(tab, log)
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(page.locator("#dock")).to_be_hidden()
    menu = page.get_by_role("button", name="Conversations")
    await expect(page.locator("#rail")).not_to_be_in_viewport()
    await menu.focus()
    await page.keyboard.press("Enter")
    await expect(menu).to_have_attribute("aria-expanded", "true")
    await expect(page.locator("#rail [data-part=new]")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(menu).to_be_focused()
    await expect(page.locator("#rail")).not_to_be_in_viewport()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_a_conversation_that_has_not_begun_has_no_end_to_go_to(tab):
    page = await tab.new_page()
    await page.set_viewport_size({"width": 390, "height": 500})
    await page.goto("/chat/")
    await page.wait_for_selector("html[data-ready]")
    log = page.get_by_role("log")
    assert await log.evaluate("(log) => log.scrollHeight - log.clientHeight") > 200
    await expect(page.get_by_role("button", name="To the end")).to_be_hidden()


async def test_single_letters_work_only_outside_of_fields(tab, owner):
    log = await sync_to_async(new_log)(owner)
    page = await opened(tab, log)
    box = page.get_by_label("Message", exact=True)
    await box.press_sequentially("n?")
    await expect(box).to_have_value("n?")
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await page.wait_for_url("**/chat/")


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "en"), ("light", "zh-hans")])
async def test_the_chat_meets_wcag_2_2_aa(tab, owner, server, theme, language):
    at = datetime.now(UTC) - timedelta(seconds=112)
    logs = [
        await sync_to_async(make)(owner, at=at) for make in (histories.working, histories.endings, histories.speaking)
    ]
    cookies = {"theme": theme, settings.LANGUAGE_COOKIE_NAME: language}
    await tab.add_cookies([{"name": name, "value": value, "url": server.address} for name, value in cookies.items()])
    for log in [None, *logs]:
        page = await opened(tab, log)
        if log:
            await expect(page.locator(".msg.ai").first).to_be_visible()
        for toggle in await page.locator("article.task [aria-expanded]").all():
            await toggle.click()
        result = await Axe().run(page, options=WCAG)
        assert result.violations_count == 0, result.generate_report()
        await page.close()
