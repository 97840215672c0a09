"""The wire with the product inside the test's own process, for what a test has to look into or to set at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.runs.inside.serving import WebServer, Worker
from tests.runs.wire.fixtures import anna, bert, dropping, model, transactional_db

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.scripted_model import ScriptedModel

__all__ = ["anna", "bert", "dropping", "model", "transactional_db"]


@pytest.fixture(scope="package")
def web(transactional_db: None) -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture(scope="package")
def worker(transactional_db: None, model: ScriptedModel) -> Iterator[Worker]:
    with Worker() as running:
        yield running
