"""LISTEN on a connection of its own."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import psycopg
from django.db import connection

from runs.doorbell.ring import CHANNEL, EVERYTHING, Listener, parse

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

logger = logging.getLogger(__name__)
_CONNECTION_KEYS = ("dbname", "user", "password", "host", "port", "sslmode", "options", "service")


async def listen(listener: Listener) -> None:
    """Hear notifications until cancelled; reconnect with growing pauses and then ring once for all that was missed."""
    parameters = {k: v for k, v in connection.get_connection_params().items() if k in _CONNECTION_KEYS}
    pause_seconds = 0.2
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(autocommit=True, **parameters) as bell:
                await bell.execute(f"LISTEN {CHANNEL}")
                listener(EVERYTHING)
                pause_seconds = 0.2
                await _hear(bell.pgconn, listener)
        except psycopg.Error as fault:
            logger.warning("doorbell: connection lost (%s), next try in %.1f s", fault, pause_seconds)
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 2, 5.0)


async def _hear(bell: PGconn, listener: Listener) -> None:
    """Pass on what comes until the connection is lost, which raises psycopg.OperationalError.

    Read by a callback of the loop: every process hears every commit, and psycopg's `notifies` builds a wait, a timeout
    and an event for each, a tenth of what a run cost.
    """
    loop = asyncio.get_running_loop()
    lost: asyncio.Future[None] = loop.create_future()
    descriptor = bell.socket  # kept: a lost connection has none any more, and a dead socket is readable for ever

    def read() -> None:
        try:
            bell.consume_input()
            while notification := bell.notifies():
                listener(parse(notification.extra.decode("utf-8", "replace")))
        except psycopg.OperationalError as fault:
            loop.remove_reader(descriptor)
            if not lost.done():
                lost.set_exception(fault)

    loop.add_reader(descriptor, read)
    try:
        read()  # what came with the answer to LISTEN lies in memory already
        await lost
    finally:
        loop.remove_reader(descriptor)
