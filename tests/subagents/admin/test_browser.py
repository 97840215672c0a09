"""The Subagents page in a real browser: what scripts add, what keys and screen readers need, what is seen at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from axe_playwright_python.async_playwright import Axe
from django.conf import settings
from django.contrib.auth import get_user_model
from playwright.async_api import BrowserContext, Page, expect

from subagents import services
from subagents.kinds import SUBAGENT
from subagents.services import Actor
from tests.subagents.admin.conftest import LIST, page_of, stored
from tests.web.browsing import Server, tab
from tests.web.test_browser import WCAG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
CONFIG = """
models: [{name: demo, use: "engine.models.demo:DemoChatModel"}]
sandbox: {provider: local, allow_host_bash: true}
subagents:
  agents: {bash: {max_turns: 80}, scout: {timeout_seconds: 60}}
  custom_agents: {broken: {description: Has no prompt.}}
"""
TAKEN = CONFIG.replace("{broken:", "{scout: {description: Ours., system_prompt: Ours.}, broken:")
SEEN_WITHIN_MS = 2_000

__all__ = ["tab"]


@pytest.fixture
def server(
    transactional_db: None, child_environment: dict[str, str], write_config: WriteConfig, managed: SaveManaged
) -> Iterator[Server]:
    managed("scout", display_name="Scout", tools=["ls", "gone"], description="Looks around in the code.")
    managed("translator", enabled=False)
    environment = {
        **child_environment,
        "SECRET_KEY": settings.SECRET_KEY,  # the session is signed here and read there
        "DEER_FLOW_CONFIG": str(write_config(CONFIG)),
        "DEER_FLOW_HOME": str(settings.DEER_FLOW_HOME),
        "SUBAGENTS_ADMIN": settings.ADMIN_SKIN,
    }
    running = Server(environment)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def owner(transactional_db: None) -> Any:
    """Who is signed in."""
    return get_user_model().objects.create(username="admin", is_staff=True, is_superuser=True)


async def opened(tab: BrowserContext, path: str) -> Page:
    page = await tab.new_page()
    await page.goto(path)
    return page


async def violations(page: Page) -> Any:
    result = await Axe().run(page, options=WCAG)
    return result.generate_report() if result.violations_count else ""


async def test_the_names_of_a_list_show_while_only_these_is_chosen_and_keys_reach_all_of_it(tab):
    page = await opened(tab, page_of("managed-scout"))
    tools = page.get_by_role("group", name="Tools tools", exact=True)
    await expect(tools.get_by_role("radio", name="Only these")).to_be_checked()
    await expect(tools.get_by_role("checkbox", name="gone unknown")).to_be_checked()
    await tools.get_by_role("radio", name="Only these").focus()
    await page.keyboard.press("ArrowUp")
    await expect(tools.get_by_role("radio", name="No tools")).to_be_checked()
    await expect(tools.get_by_role("checkbox").first).to_be_hidden()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Tab")
    await expect(tools.get_by_role("checkbox", name="bash", exact=True)).to_be_focused()
    await page.keyboard.press("Space")
    await tools.get_by_role("checkbox", name="gone unknown").uncheck()
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.wait_for_url(f"**{LIST}")
    assert (await sync_to_async(stored)("scout")).tools == ("ls", "bash")


async def test_the_size_of_a_prompt_is_counted_while_typing_and_too_long_a_text_is_named(tab):
    page = await opened(tab, page_of("managed-scout"))
    prompt = page.get_by_label("System prompt")
    size = page.locator("[data-prompt-size]")
    await prompt.fill("研究 abcd 🦊")
    await expect(size).to_have_text("9 of 200,000 characters · about 4 tokens")
    await prompt.evaluate("(field) => { field.value = 'x'.repeat(200_003); field.dispatchEvent(new Event('input')); }")
    await expect(size).to_contain_text("too long by 3 characters")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator(".sa-faults")).to_contain_text("at most 200000 characters, not of 200003")
    assert len(await prompt.input_value()) == 200_003


async def test_a_text_that_the_server_would_not_read_is_not_sent(tab):
    page = await opened(tab, page_of("managed-scout"))
    prompt = page.get_by_label("System prompt")
    await prompt.evaluate("(field) => { field.value = '研'.repeat(3_000_000); }")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(prompt).to_be_focused()
    await expect(page.locator("[data-prompt-size]")).to_contain_text("too long by 2,800,000 characters")
    assert await prompt.evaluate("(field) => field.value.length") == 3_000_000


async def test_a_changed_form_asks_before_it_is_left_and_a_sent_one_does_not(tab):
    page = await opened(tab, page_of("managed-scout"))
    asked: list[str] = []

    async def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", answer)
    await page.get_by_role("link", name="Cancel").click()
    await page.wait_for_url(f"**{LIST}")
    assert asked == []
    await page.goto(page_of("managed-scout"))
    await page.get_by_label("Display name").fill("Another")
    await page.get_by_role("link", name="Cancel").click()
    await expect(page.get_by_label("Display name")).to_have_value("Another")
    assert asked == ["beforeunload"]
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.wait_for_url(f"**{LIST}")
    assert asked == ["beforeunload"]


async def test_the_switch_of_a_row_is_a_button_that_gets_the_focus_back(tab):
    page = await opened(tab, LIST)
    await page.get_by_role("switch", name="Enable Scout").press("Enter")
    switch = page.get_by_role("switch", name="Enable Scout")
    await expect(switch).not_to_be_checked()
    await expect(switch).to_be_focused()
    assert not (await sync_to_async(stored)("scout")).enabled


@pytest.mark.parametrize("path", [LIST, page_of("managed-scout")])
async def test_a_conflict_shows_on_an_open_page_within_two_seconds_and_goes_by_itself(tab, write_config, path):
    page = await opened(tab, path)
    await page.get_by_role("textbox").last.fill("typed")
    state = page.locator('[data-live="state-managed-scout"]' if path == LIST else '[data-live="badges"]')
    note = page.locator('[data-live="banners"]' if path == LIST else '[data-live="state"]')
    await expect(state).to_contain_text("Active")
    write_config(TAKEN)
    await expect(state).to_contain_text("Shadowed", timeout=SEEN_WITHIN_MS)
    await expect(note).to_contain_text("held by")
    write_config(CONFIG)
    await expect(state).to_contain_text("Active", timeout=SEEN_WITHIN_MS)
    await expect(note).not_to_contain_text("held by")
    await expect(page.get_by_role("textbox").last).to_have_value("typed")


async def test_a_form_says_at_once_that_somebody_else_has_saved(tab):
    page = await opened(tab, page_of("managed-scout"))
    await page.get_by_label("Display name").fill("Mine")
    version = (await sync_to_async(stored)("scout")).version or ""
    await sync_to_async(services.update)(
        SUBAGENT, "scout", {"max_turns": 7}, expected_version=version, actor=Actor(label="robot")
    )
    await expect(page.get_by_text("Somebody else has saved this subagent")).to_be_visible(timeout=SEEN_WITHIN_MS)
    await expect(page.get_by_label("Display name")).to_have_value("Mine")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("Saved by robot (")
    await expect(page.get_by_label("Turns at most")).to_have_value("7")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.wait_for_url(f"**{LIST}")
    after = await sync_to_async(stored)("scout")
    assert (after.display_name, after.max_turns) == ("Mine", 7)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_every_page_meets_wcag_2_2_aa_and_fits_a_phone(tab, server, theme, language):
    await tab.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": server.address}])
    choose = f"localStorage.setItem('theme', '{theme}'); localStorage.setItem('adminTheme', '\"{theme}\"');"
    await tab.add_init_script(f"if (location.protocol === 'http:') {{ {choose} }}")
    page = await tab.new_page()
    await page.emulate_media(color_scheme=theme)
    history = f"{LIST}managed-scout/history/"
    paths = [
        *(LIST, f"{LIST}add/", f"{LIST}add/?from=builtin-bash"),
        *(page_of("managed-scout"), page_of("builtin-bash"), page_of("config-broken")),
        *(history, f"{history}1/", f"{LIST}managed-scout/delete/"),
    ]
    for path in paths:
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.goto(path)
        assert await violations(page) == "", path
        await page.set_viewport_size({"width": 390, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390, path
    await page.goto(f"{LIST}add/")
    await page.locator(".sa-submit button").first.click()
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await violations(page) == ""
