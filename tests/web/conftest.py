from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import AsyncClient, Client

from runs.relay import Relay, relay
from tests.web.browsing import BACKEND, owner, server, tab
from tests.web.log_writer import LogWriter, person

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["BACKEND", "owner", "server", "tab"]


@pytest.fixture
def lin(db: None) -> Any:
    return person("lin")


@pytest.fixture
def stranger(db: None) -> Any:
    return person("stranger")


@pytest.fixture
def log(lin: Any) -> LogWriter:
    return LogWriter(lin)


@pytest.fixture
def browser(lin: Any) -> Client:
    """Signed in as lin."""
    client = Client()
    client.force_login(lin, backend=BACKEND)
    return client


@pytest.fixture
async def following() -> AsyncIterator[Relay]:
    """The running loop's relay, stopped afterwards."""
    await relay().start()
    yield relay()
    await relay().stop()


@pytest.fixture
def async_browser(lin: Any) -> AsyncClient:
    client = AsyncClient()
    client.force_login(lin, backend=BACKEND)
    return client
