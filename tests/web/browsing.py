"""A real server of ours and a browser signed in to it."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import Client
from playwright.async_api import BrowserContext, Page, async_playwright

from tests.patience import PATIENCE_SECONDS
from tests.site.processes import Spoken
from tests.web.chromium import launch
from tests.web.log_writer import LogWriter, person

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BACKEND = "django.contrib.auth.backends.ModelBackend"


class Server:
    def __init__(self, environment: dict[str, str]) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self.environment = environment
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: Spoken | None = None

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "deerflow_site.asgi:application",
            "--port",
            str(self.port),
            "--no-access-log",
        ]
        self.process = Spoken(command, self.environment)
        self.process.wait_for("Uvicorn running")

    def stop(self) -> None:
        if self.process is not None:
            self.process.close()
            self.process = None


@pytest.fixture
def server(transactional_db: None, child_environment: dict[str, str]) -> Iterator[Server]:
    # The session was signed here and is read there.
    running = Server({**child_environment, "SECRET_KEY": settings.SECRET_KEY})
    running.start()
    yield running
    running.stop()


@pytest.fixture
def owner(transactional_db: None) -> Any:
    return person("lin")


@pytest.fixture
async def tab(server: Server, owner: Any) -> AsyncIterator[BrowserContext]:
    """A browser signed in as lin. A fault on the page or in its console fails the test."""
    client = Client()
    await sync_to_async(client.force_login)(owner, backend=BACKEND)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    faults: list[str] = []
    async with async_playwright() as playwright, await launch(playwright) as chromium:
        context = await chromium.new_context(viewport={"width": 1440, "height": 900}, base_url=server.address)
        context.set_default_timeout(1000 * PATIENCE_SECONDS)
        await context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": server.address}])
        context.on("weberror", lambda fault: faults.append(str(fault.error)))
        context.on("console", lambda said: faults.append(said.text) if "Content Security" in said.text else None)
        yield context
    assert faults == []


async def opened(tab: BrowserContext, log: LogWriter | None = None) -> Page:
    page = await tab.new_page()
    await page.goto(f"/chat/{log.thread.pk}/" if log else "/chat/")
    await page.wait_for_selector("html[data-ready]")
    return page
