"""LISTEN on a connection of its own."""

from __future__ import annotations

import asyncio
import logging

import psycopg
from django.db import connection

from runs.doorbell.ring import CHANNEL, EVERYTHING, Listener, parse

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
                async for notification in bell.notifies():
                    listener(parse(notification.payload))
        except psycopg.Error as fault:
            logger.warning("doorbell: connection lost (%s), next try in %.1f s", fault, pause_seconds)
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 2, 5.0)
