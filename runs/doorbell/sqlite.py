"""PRAGMA data_version changes when another connection has committed; looking at it costs no file access."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading

from django.db import connection

from runs.doorbell import EVERYTHING, Listener

logger = logging.getLogger(__name__)
EVERY_SECONDS = 0.02


async def listen(listener: Listener) -> None:
    """Ring on every commit of any other connection, this process's included, until cancelled."""
    loop = asyncio.get_running_loop()
    stop = threading.Event()
    name = str(connection.settings_dict["NAME"])
    watcher = loop.run_in_executor(None, _watch, name, stop, lambda: loop.call_soon_threadsafe(listener, EVERYTHING))
    try:
        await asyncio.shield(watcher)
    finally:
        stop.set()


def _watch(name: str, stop: threading.Event, ring) -> None:  # type: ignore[no-untyped-def]
    seen = None
    bell: sqlite3.Connection | None = None
    while not stop.wait(EVERY_SECONDS):
        try:
            if bell is None:
                bell = sqlite3.connect(name, isolation_level=None, uri=name.startswith("file:"))
            version = bell.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as fault:
            logger.warning("doorbell: %s", fault)
            bell, seen = None, None
            stop.wait(0.5)
            continue
        if version != seen:
            seen = version
            ring()
    if bell is not None:
        bell.close()
