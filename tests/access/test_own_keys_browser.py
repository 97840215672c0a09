"""The page of one's own keys in a real browser: made, copied, revoked; readable for everybody on any screen."""

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


@pytest.fixture
def owner(transactional_db: None) -> Any:
    """A member, without staff rights. A flushed database has no roles, so the right is given by hand."""
    user = person("lin")
    from django.contrib.auth.models import Permission

    user.user_permissions.set(Permission.objects.filter(codename__in=["add_apikey", "change_apikey"]))
    return user


async def test_a_key_is_made_copied_and_revoked(tab):
    await tab.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await tab.new_page()
    await page.goto("/chat/")
    await page.get_by_label("More").click()
    await page.get_by_role("link", name="API keys").click()
    await page.get_by_label("What is it for?").fill("build bot")
    await page.get_by_role("button", name="Make the key").click()
    made = await page.get_by_label("Key", exact=True).input_value()
    assert await sync_to_async(keys.authenticate)(made) is not None
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == made
    await page.get_by_label("Revoke build bot").click()
    await page.get_by_role("button", name="Revoke it for good").click()
    await expect(page.get_by_role("status")).to_contain_text("is revoked")
    assert await sync_to_async(keys.authenticate)(made) is None


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_is_accessible_and_fits_a_phone(tab, owner, server, scheme: str, language: str):
    await sync_to_async(keys.make_key)(owner, "nightly report of the evaluation team", ["read", "run"])
    old, _key = await sync_to_async(keys.make_key)(owner, "old", ["read"])
    await sync_to_async(keys.revoke)(old.pk)
    page = await tab.new_page()
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.context.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": server.address}])
    for width in (1280, 390):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.goto("/keys/")
        await page.locator(".revoke summary").first.click()
        await _check(page, f"own-keys-{scheme}-{language}-{width}")
        await page.locator(".fields button").click()
        await expect(page.locator(".fault")).to_be_visible()
        await page.locator("[name=name]").fill("x")
        await page.locator(".fields button").click()
        await expect(page.locator("#made-key")).to_be_visible()
        await _check(page, f"own-keys-made-{scheme}-{language}-{width}")


async def _check(page: Any, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
    found = await Axe().run(page, options=WCAG)
    assert found.response["violations"] == [], (name, found.generate_report())
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
