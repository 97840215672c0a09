"""What requests, sockets and streams hold of the database: nothing once they are answered."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from django.db import connection

from deerflow_site.asgi import application
from tests.runs.wire.callers import eventually, in_database

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def open_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


async def test_two_hundred_requests_leave_no_connection_behind():
    before = await in_database(open_connections)

    async def few_are_open() -> bool:
        return await in_database(open_connections) - before <= 2

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=application), base_url="http://localhost", timeout=60
    ) as client:
        for _burst in range(10):
            answers = await asyncio.gather(*(client.get("/readyz") for _request in range(20)))
            assert {answer.status_code for answer in answers} <= {200, 503}
            await eventually(few_are_open)  # the server takes a moment to let go of one that was closed
