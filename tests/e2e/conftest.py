from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.databases import own_database
from tests.e2e.house import House
from tests.scripted_model import ScriptedModel
from tests.web.chromium import ARGUMENTS, executable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture
def database(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of an installation of its own, on the kind of database this test run uses."""
    environment = {
        name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "DEER_FLOW_CONFIG"}
    }
    with own_database() as own:
        yield {**environment, **own}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(plan=True, rate_per_second=200) as running:
        yield running


@pytest.fixture
def house(tmp_path: Path, database: dict[str, str], model: ScriptedModel) -> Iterator[House]:
    running = House.start(tmp_path / "home", database, model.url)
    yield running
    running.stop()


@pytest.fixture
def page(house: House) -> Iterator[Page]:
    """Signed in; fails the test on any error the browser reports."""
    from playwright.sync_api import sync_playwright

    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        opened = browser.new_page(viewport={"width": 1440, "height": 950})
        opened.on("pageerror", lambda fault: faults.append(str(fault)))
        opened.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        house.sign_in(opened)
        yield opened
        browser.close()
    assert [fault for fault in faults if not house.explains(fault)] == []
