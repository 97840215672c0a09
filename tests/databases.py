"""A database of its own for a test that starts whole processes."""

from __future__ import annotations

import os
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def own_database() -> Iterator[dict[str, str]]:
    """The variables that lead to a new, empty database on this test run's PostgreSQL; none where it runs on SQLite."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        yield {}
        return
    name = f"installation_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield {"DATABASE_URL": urlsplit(server)._replace(path=f"/{name}").geturl()}
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
