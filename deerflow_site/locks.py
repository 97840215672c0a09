"""A lock that holds across every process of one deployment, for work that must happen once."""

from __future__ import annotations

import fcntl
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def deployment_lock(name: str) -> Iterator[None]:
    """Wait for the lock called `name` and hold it.

    PostgreSQL: a session-level advisory lock, so it also holds between machines. SQLite: a lock on a file in
    DEER_FLOW_HOME, because everybody who shares that database shares that folder. Both go with their process.
    """
    if connection.vendor == "postgresql":
        key = zlib.crc32(f"deerflow:{name}".encode())
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [key])
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
        return
    with (settings.DEER_FLOW_HOME / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
