"""Who may open a thread's socket, through the whole site: its owner's browser, from a page of ours."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from deerflow_site.asgi import application
from runs.relay import relay
from tests.patience import PATIENCE_SECONDS
from tests.web.browsing import BACKEND
from tests.web.log_writer import LogWriter, person

pytestmark = pytest.mark.django_db(transaction=True)
OURS = "http://localhost"


def conversation() -> tuple[LogWriter, str]:
    """A thread with one message, and the cookie of its owner."""
    owner = person("lin")
    log = LogWriter(owner)
    log.message(log.run().pk, {"type": "human", "content": "Hello"})
    client = Client()
    client.force_login(owner, backend=BACKEND)
    return log, f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


async def first_answers(log: LogWriter, **headers: str) -> list[Any]:
    """The first two answers to a handshake with these headers; the second is None after a refusal."""
    sent = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    path = f"/ws/threads/{log.thread.pk}/"
    scope = {"type": "websocket", "path": path, "query_string": b"after=0", "headers": sent, "subprotocols": []}
    wire = ApplicationCommunicator(application, scope)
    await wire.send_input({"type": "websocket.connect"})
    answers = [await wire.receive_output(PATIENCE_SECONDS)]
    if answers[0]["type"] == "websocket.accept":
        answers.append(await wire.receive_output(PATIENCE_SECONDS))
    await wire.send_input({"type": "websocket.disconnect", "code": 1001})
    await wire.wait(PATIENCE_SECONDS)
    await relay().stop()
    return [answer.get("code", answer["type"]) for answer in answers]


@pytest.mark.parametrize(
    "origin", ["https://evil.test", "http://localhost.evil.test", "http://evil.test/localhost", "null", ""]
)
async def test_a_page_of_another_site_is_refused_before_the_socket_is_open_cookie_or_not(origin: str):
    log, cookie = await sync_to_async(conversation)()
    refused = await first_answers(log, origin=origin, cookie=cookie)
    assert refused == await first_answers(log, origin=origin)
    assert refused != ["websocket.accept", "websocket.send"]
    assert len(refused) == 1


async def test_without_an_origin_a_cookie_opens_nothing():
    log, cookie = await sync_to_async(conversation)()
    assert len(await first_answers(log, cookie=cookie)) == 1


async def test_a_page_of_ours_needs_the_owners_cookie():
    log, cookie = await sync_to_async(conversation)()
    assert await first_answers(log, origin=OURS, cookie=cookie) == ["websocket.accept", "websocket.send"]
    assert await first_answers(log, origin=OURS) == ["websocket.accept", 4401]
    assert await first_answers(log, origin=OURS, cookie=cookie + "x") == ["websocket.accept", 4401]
