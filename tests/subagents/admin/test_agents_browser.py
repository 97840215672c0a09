"""The form of a custom agent in a real browser: the list of whom it can call follows what is ticked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from axe_playwright_python.async_playwright import Axe
from django.conf import settings
from playwright.async_api import expect

from subagents import registry, services
from subagents.kinds import AGENT, SUBAGENT
from subagents.services import Actor
from tests.web.browsing import server, tab
from tests.web.log_writer import person

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["owner", "server", "tab"]

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
AGENTS = "/admin/subagents/customagent/"


@pytest.fixture
def owner(transactional_db: None) -> Any:
    return person("lin", is_staff=True, is_superuser=True)


@pytest.fixture(autouse=True)
def made(transactional_db: None) -> Iterator[None]:
    actor = Actor(label="test")
    registry.forget()
    for name in ("scout", "clerk"):
        document = {"name": name, "description": f"Does {name}.", "system_prompt": f"You are {name}."}
        services.create(SUBAGENT, document, actor=actor)
    agent = {"name": "writer", "system_prompt": "You write.", "allowed_subagents": ["scout", "gone"]}
    services.create(AGENT, agent, actor=actor)
    yield
    registry.forget()


async def test_the_list_follows_what_is_ticked_before_it_is_saved(tab):
    page = await tab.new_page()
    await page.goto(f"{AGENTS}managed-writer/change/")
    called = page.locator("[data-reach-list] a")
    await expect(called).to_have_text(["scout"])
    await expect(page.locator("[data-reach-list]")).to_contain_text("missing: no subagent bears this name")
    await page.get_by_role("checkbox", name="clerk").check()
    await expect(called).to_have_text(["clerk", "scout"])
    await page.get_by_label("None", exact=True).check()
    await expect(page.locator("[data-reach-list]")).to_contain_text("cannot delegate to anybody")
    await page.get_by_label("Only selected").check()
    await page.get_by_role("checkbox", name="scout").uncheck()
    await expect(called).to_have_text(["clerk"])
    await page.get_by_label("May delegate").uncheck()
    await expect(page.locator("[data-reach-list]")).to_contain_text("delegation is switched off")
    await page.get_by_label("May delegate").check()
    await expect(called).to_have_text(["clerk"])
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.wait_for_url(f"**{AGENTS}")
    agent = await sync_to_async(lambda: registry.store(AGENT).get("writer"))()
    assert agent.allowed_subagents == ("gone", "clerk")


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh-hans")])
async def test_list_and_form_meet_wcag_2_2_aa_also_on_a_phone(tab, server, theme, language):
    await tab.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": server.address}])
    page = await tab.new_page()
    await page.emulate_media(color_scheme=theme)
    for path in (AGENTS, f"{AGENTS}managed-writer/change/", f"{AGENTS}managed-writer/history/"):
        await page.goto(path)
        for width in (1440, 390):
            await page.set_viewport_size({"width": width, "height": 900})
            result = await Axe().run(page, options=WCAG)
            assert result.violations_count == 0, result.generate_report()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
