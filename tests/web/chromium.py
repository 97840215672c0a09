"""The browser of the tests: the system's own Chromium."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

expect.set_options(timeout=1000 * PATIENCE_SECONDS)


def executable() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


async def launch(playwright: Playwright) -> Browser:
    return await playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
