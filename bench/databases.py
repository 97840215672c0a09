"""The database of one measurement: a file that nothing else uses, or a PostgreSQL database of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from bench.processes import ServerFailed, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

POSTGRES_USER = "postgres"  # initdb refuses to work as root


@contextlib.contextmanager
def database(kind: str, workplace: Path) -> Iterator[str]:
    """The DATABASE_URL to use; empty for the product's own default, SQLite in its home.

    For PostgreSQL: a new database on the server that DATABASE_URL names, else on a server of our own
    with PostgreSQL's default settings. Either is gone afterwards. Raises ServerFailed.
    """
    if kind == "sqlite":
        yield ""
    elif os.environ.get("DATABASE_URL", "").startswith("postgres"):
        with _new_database(os.environ["DATABASE_URL"]) as url:
            yield url
    else:
        with _own_server(workplace / "postgres") as url, _new_database(url) as own:
            yield own


@contextlib.contextmanager
def _new_database(server_url: str) -> Iterator[str]:
    name = f"bench_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)


@contextlib.contextmanager
def _own_server(directory: Path) -> Iterator[str]:
    user = POSTGRES_USER if os.geteuid() == 0 else None
    directory.mkdir()
    if user:
        _let_pass(directory.parent)
        shutil.chown(directory, user)
    cluster, port = directory / "cluster", free_port()
    options = f"-h 127.0.0.1 -p {port} -k {directory}"
    _run(user, _tool("initdb"), "-D", str(cluster), "-U", POSTGRES_USER, "-A", "trust", "-E", "UTF8")
    pg_ctl = [_tool("pg_ctl"), "-D", str(cluster), "-w", "-l", str(directory / "log")]
    _run(user, *pg_ctl, "-o", options, "start")
    try:
        yield f"postgres://{POSTGRES_USER}@127.0.0.1:{port}/postgres"
    finally:
        _run(user, *pg_ctl, "-m", "immediate", "stop")


def _let_pass(workplace: Path) -> None:
    """Let another user reach a folder inside; mkdtemp keeps everybody else out."""
    workplace.chmod(0o711)


def _tool(name: str) -> str:
    found = shutil.which(name) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)), None
    )
    if not found:
        raise ServerFailed(f"{name} is not installed (apt-get install postgresql), and DATABASE_URL names no server")
    return found


def _run(user: str | None, *argv: str) -> None:
    account = pwd.getpwnam(user) if user else None
    ended = subprocess.run(
        argv,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if argv[0].endswith("initdb") else subprocess.DEVNULL,
        stderr=subprocess.PIPE if argv[0].endswith("initdb") else subprocess.DEVNULL,
        check=False,
        text=True,
    )
    if ended.returncode:
        raise ServerFailed(f"{' '.join(argv)} exited with {ended.returncode}\n{ended.stderr or ''}")
