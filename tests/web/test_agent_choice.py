"""Choosing the agent of a conversation: on the page, in the box, and in what is sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from axe_playwright_python.async_playwright import Axe
from django.conf import settings
from playwright.async_api import expect

from runs.event_types import RunNoted, RunQueued
from runs.models import Run
from subagents import registry
from subagents import services as definitions
from subagents.kinds import AGENT, SUBAGENT
from tests.web.browsing import opened
from tests.web.log_writer import LogWriter
from tests.web.test_actions import post, says
from tests.web.test_browser import WCAG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TESTS = definitions.Actor(label="a test")
EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def agents(db: None, tmp_path: Path, settings: Any) -> Iterator[None]:
    """A scout that can be called; a writer that may call it, a hermit that may call nobody, one switched off."""
    settings.CONFIG_FILE = tmp_path / "config.yaml"
    (tmp_path / "config.yaml").write_text("sandbox: {provider: local}\n")
    registry.forget()
    make()
    yield
    registry.forget()


def make() -> None:
    scout = {"name": "scout", "description": "Find sources.", "system_prompt": "You are scout."}
    definitions.create(SUBAGENT, scout, actor=TESTS)
    custom: dict[str, dict[str, Any]] = {
        "writer": {"display_name": "The Writer", "description": "Writes\nprose.", "allowed_subagents": ["scout"]},
        "hermit": {"allowed_subagents": [], "description": EVIL},
        "retired": {"enabled": False},
    }
    for name, fields in custom.items():
        definitions.create(AGENT, {"name": name, "system_prompt": f"You are {name}.", **fields}, actor=TESTS)


def page_of(browser: Any, path: str = "/chat/") -> dict[str, Any]:
    html = browser.get(path).content.decode()
    block = html.partition('<script id="page" type="application/json">')[2].partition("</script>")[0]
    return {**json.loads(block), "html": html}


@pytest.mark.django_db
def test_the_page_offers_the_default_lead_and_the_enabled_agents_with_whom_they_can_call(browser, agents):
    page = page_of(browser)
    assert list(page["agents"]) == ["lead_agent", "hermit", "writer"]
    assert page["agents"]["writer"] == {
        "label": "The Writer",
        "about": "Writes prose. · Can delegate to: scout",
        "callables": ["scout"],
        "off": False,
    }
    assert page["agents"]["hermit"]["off"]
    assert page["agents"]["hermit"]["about"].endswith("this agent may not call any subagent.")
    assert (page["agent"], page["delegation"]) == ("lead_agent", True)
    assert "<img src=x" not in page["html"]
    assert "You are" not in page["html"]


@pytest.mark.django_db
def test_a_thread_opens_with_what_its_newest_message_was_sent_with(browser, agents):
    options = {"agent_name": "writer", "subagent_enabled": False}
    started = post(browser, "/chat/new", {"text": "One", "options": options}).json()
    assert Run.objects.get().agent == "writer"
    page = page_of(browser, started["url"])
    assert (page["agent"], page["delegation"]) == ("writer", False)
    post(browser, f"{started['url']}messages", {"text": "Two", "options": {"subagent_enabled": True}})
    page = page_of(browser, started["url"])
    assert (page["agent"], page["delegation"]) == ("writer", True)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["retired", "nobody", "You are hermit.", 7, ""])
def test_a_message_to_an_agent_that_cannot_be_used_is_refused_and_leaves_nothing(browser, agents, name):
    answer = post(browser, "/chat/new", {"text": "One", "options": {"agent_name": name}})
    assert says(answer) == (422, "invalid", "options.agent_name")
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_what_is_clamped_is_noted_as_it_was_asked_for(browser):
    post(browser, "/chat/new", {"text": "One", "options": {"max_total_subagents": 500}})
    assert Run.objects.get().metadata == {"clamped": {"max_total_subagents": [500, 50]}}


# --- In a browser -----------------------------------------------------------------------------------------------
e2e = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def made(transactional_db: None) -> Iterator[None]:
    """The same agents, for a server that reads the shipped configuration."""
    registry.forget()
    make()
    yield
    registry.forget()


class TestInABrowser:
    pytestmark = e2e

    async def test_an_agent_is_chosen_with_keys_and_goes_with_the_message(self, tab, made):
        page = await opened(tab)
        choice = page.get_by_label("Agent", exact=True)
        await expect(choice.locator("option")).to_have_text(["Lead agent", "hermit", "The Writer"])
        await choice.focus()
        await page.keyboard.press("End")
        await expect(page.locator("[data-part=about]")).to_have_text("Writes prose. · Can delegate to: scout")
        await expect(page.locator("[data-part=roster] > li:visible")).to_have_count(1)
        await expect(page.get_by_label("Message", exact=True)).to_have_attribute("placeholder", "Ask The Writer")
        await page.reload()
        await expect(choice).to_have_value("writer")
        await page.get_by_label("Message", exact=True).fill("Hello")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/chat/*-*/")
        await expect(choice).to_have_value("writer")
        run = await sync_to_async(Run.objects.get)()
        assert (run.agent, run.options) == ("writer", {"subagent_enabled": True, "agent_name": "writer"})
        await page.goto("/chat/")
        await expect(choice).to_have_value("lead_agent")

    async def test_an_agent_that_may_call_nobody_cannot_be_switched_on(self, tab, made):
        page = await opened(tab)
        await page.get_by_label("Agent", exact=True).select_option("hermit")
        switch = page.locator("[data-part=delegation]")
        await expect(switch).to_be_disabled()
        await expect(switch).not_to_be_checked()
        await expect(page.locator("[data-part=about]")).to_contain_text("may not call any subagent")
        await page.get_by_label("Agent", exact=True).select_option("lead_agent")
        await expect(switch).to_be_checked()

    async def test_answers_bear_the_name_of_their_agent_and_say_why_nobody_was_called(self, tab, owner, made):
        log = await sync_to_async(LogWriter)(owner)
        for agent, reason in (("writer", ""), ("gone", "request")):
            run = await sync_to_async(log.run)(status="success")
            await Run.objects.filter(pk=run.pk).aupdate(agent=agent)
            await sync_to_async(log.fact)(run.pk, RunQueued(agent=agent))
            await sync_to_async(log.message)(run.pk, {"type": "human", "content": "?"})
            if reason:
                await sync_to_async(log.fact)(run.pk, RunNoted(delegation_off=reason))
            await sync_to_async(log.message)(run.pk, {"type": "ai", "content": "!"})
        page = await opened(tab, log)
        await expect(page.locator(".msg.ai .by")).to_have_text(["The Writer", "gone"])
        await expect(page.locator(".noted")).to_have_text(
            "Delegation is off: the request switched it off (subagent_enabled)."
        )
        await expect(page.locator("[data-part=about]")).to_contain_text("“gone” can no longer be used")
        await expect(page.get_by_label("Agent", exact=True)).to_have_value("lead_agent")

    @pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh-hans")])
    async def test_the_box_with_agents_meets_wcag_2_2_aa_also_on_a_phone(self, tab, server, made, theme, language):
        cookies = {"theme": theme, settings.LANGUAGE_COOKIE_NAME: language}
        await tab.add_cookies(
            [{"name": name, "value": value, "url": server.address} for name, value in cookies.items()]
        )
        page = await opened(tab)
        await page.locator("[data-part=agent]").select_option("writer")
        for width in (1440, 390):
            await page.set_viewport_size({"width": width, "height": 844})
            result = await Axe().run(page, options=WCAG)
            assert result.violations_count == 0, result.generate_report()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
