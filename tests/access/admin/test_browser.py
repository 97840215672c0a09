"""The page of API keys in a real browser: made, copied, revoked; readable for everybody on any screen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from axe_playwright_python.async_playwright import Axe
from django.conf import settings
from playwright.async_api import expect

from access import keys
from tests.web.browsing import server, tab
from tests.web.log_writer import person

__all__ = ["owner", "server", "tab"]

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
KEYS = "/admin/access/apikey/"


@pytest.fixture
def owner(transactional_db: None) -> Any:
    return person("lin", is_staff=True, is_superuser=True)


async def test_a_key_is_made_copied_and_revoked(tab):
    await tab.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await tab.new_page()
    await page.goto(f"{KEYS}add/")
    await page.get_by_label("Name").fill("build bot")
    await page.get_by_label("admin: also change").check()
    await page.get_by_role("button", name="Save", exact=True).click()
    made = await page.get_by_label("Key", exact=True).input_value()
    assert await sync_to_async(keys.authenticate)(made) is not None
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == made
    await page.get_by_role("link", name="I have copied it").click()
    await page.get_by_role("link", name="Revoke build bot").click()
    await page.get_by_role("button", name="Revoke").click()
    await expect(page.locator("body")).to_contain_text("is revoked")
    assert await sync_to_async(keys.authenticate)(made) is None


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_of_keys_is_accessible_and_fits_a_phone(tab, owner, server, scheme: str, language: str):
    row, _key = await sync_to_async(keys.make_key)(owner, "nightly report of the evaluation team", ["read", "run"])
    old, _key = await sync_to_async(keys.make_key)(owner, "old", ["admin"])
    await sync_to_async(keys.revoke)(old.pk)
    page = await tab.new_page()
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.context.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": server.address}])
    for width in (1280, 390):
        await page.set_viewport_size({"width": width, "height": 900})
        for name, path in (
            ("list", ""),
            ("add", "add/"),
            ("revoke", f"{row.pk}/revoke/"),
            ("one", f"{row.pk}/change/"),
        ):
            await page.goto(f"{KEYS}{path}")
            await _check(page, f"{name}-{scheme}-{language}-{width}")
        await page.goto(f"{KEYS}add/")
        await page.locator("[name=name]").fill("x")
        await page.locator("[name=_save]").click()
        await expect(page.locator("#made-key")).to_be_visible()
        await _check(page, f"made-{scheme}-{language}-{width}")


async def _check(page: Any, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        await page.screenshot(path=Path(folder) / f"{name}.png")
    found = await Axe().run(page, options=WCAG)
    assert found.response["violations"] == [], (name, found.generate_report())
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
