"""Fixtures of everything that meets the wire, whether the product runs in processes of its own or inside the test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import override_settings

from subagents import registry
from tests.runs.wire.callers import make_caller
from tests.runs.wire.proxy import DroppingProxy
from tests.scripted_model import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tests.runs.inside.serving import WebServer
    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess

    Server = WebServer | WebProcess

CONFIG = """\
models:
  - {{name: scripted, use: "langchain_openai:ChatOpenAI", model: scripted, api_key: not-a-key, base_url: "{url}",
     stream_usage: true, max_retries: 0}}
outbound:
  allow_private: [127.0.0.2]  # where the receivers of webhooks listen
"""


@pytest.fixture(scope="package")
def transactional_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database for all tests of this folder together: server and worker commit for real, and go on between tests.

    Nothing is emptied between two tests; each makes people and threads of its own.
    """
    with django_db_blocker.unblock():
        yield
        connections.close_all()
        call_command("flush", verbosity=0, interactive=False)
        connections.close_all()


@pytest.fixture(scope="package")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedModel]:
    """The scripted model server that the product's configuration names."""
    with ScriptedModel() as running:
        file = tmp_path_factory.mktemp("wire") / "config.yaml"
        file.write_text(CONFIG.format(url=running.url), encoding="utf-8")
        with override_settings(CONFIG_FILE=file):
            registry.forget()
            yield running
        registry.forget()


@pytest.fixture
async def anna(web: Server) -> AsyncIterator[Caller]:
    caller = await make_caller(web.url)
    yield caller
    await caller.close()


@pytest.fixture
async def bert(web: Server) -> AsyncIterator[Caller]:
    """Somebody else."""
    caller = await make_caller(web.url)
    yield caller
    await caller.close()


@pytest.fixture
async def dropping(web: Server) -> AsyncIterator[Callable[[int], Awaitable[DroppingProxy]]]:
    """Make a proxy whose first connections break after so many bytes of the answer."""
    proxies: list[DroppingProxy] = []

    async def make(*cuts: int) -> DroppingProxy:
        proxies.append(DroppingProxy(web.port, cuts))
        await proxies[-1].start()
        return proxies[-1]

    yield make
    for proxy in proxies:
        await proxy.stop()
