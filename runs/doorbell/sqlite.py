"""The bell of processes that share an SQLite file, hence a machine: datagrams to one mailbox for each listener.

SQLite itself can only say "something changed", and only to those who ask. A mailbox is a Unix datagram socket in a
folder of this user; whoever commits sends what changed to all of them. A datagram may be lost (a full mailbox, a folder
that was cleaned away), so listeners also look at PRAGMA data_version now and then.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import os
import socket
import sqlite3
import stat
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import connection

from runs.doorbell.ring import EVERYTHING, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runs.doorbell.ring import Listener

logger = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
LOOK_WITHOUT_MAILBOX_SECONDS = 0.02
_LARGEST_RING_BYTES = 8192
_numbers = itertools.count()


def send(texts: Iterable[str]) -> None:
    """Tell the other processes of this machine. Never blocks, never raises: a lost ring is harmless."""
    folder = mailboxes(str(connection.settings_dict["NAME"]))
    if not _is_ours(folder):
        return
    own = f"{os.getpid()}-"  # this process's listeners hear their own commits without a datagram
    rings = [text.encode() for text in texts]
    try:
        others = [name for name in os.listdir(folder) if not name.startswith(own)]  # noqa: PTH208 - names are enough
    except OSError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        for name in others:
            _send_to(sender, folder / name, rings)


def _send_to(sender: socket.socket, mailbox: Path, rings: Iterable[bytes]) -> None:
    for ring in rings:
        try:
            sender.sendto(ring, socket.MSG_DONTWAIT, str(mailbox))
        except ConnectionRefusedError:  # its owner is gone without taking it down
            with suppress(OSError):
                mailbox.unlink()
            return
        except OSError:
            return


@lru_cache(maxsize=8)
def mailboxes(database: str) -> Path:
    """The folder of this database's mailboxes.

    Not beside the database: the path of a Unix socket has at most 107 bytes.
    """
    key = hashlib.sha256(os.path.realpath(database).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"subagents-bell-{os.geteuid()}-{key}"


def _is_ours(folder: Path) -> bool:
    """Whether the folder is there and only this user may write to it; a link is never followed."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


async def listen(listener: Listener) -> None:
    """Ring for every datagram and for every change that came without one, until cancelled."""
    loop = asyncio.get_running_loop()
    database = str(connection.settings_dict["NAME"])
    path, mailbox = _open_mailbox(database)
    stop = threading.Event()
    seconds = LOOK_SECONDS if mailbox is not None else LOOK_WITHOUT_MAILBOX_SECONDS

    def ring() -> None:
        loop.call_soon_threadsafe(listener, EVERYTHING)

    look = loop.run_in_executor(None, _watch, database, stop, seconds, ring)
    try:
        if mailbox is not None:
            loop.add_reader(mailbox.fileno(), _read, mailbox, listener)
        await asyncio.shield(look)
    finally:
        stop.set()
        if mailbox is not None and path is not None:
            loop.remove_reader(mailbox.fileno())
            mailbox.close()
            with suppress(OSError):
                path.unlink()
                path.parent.rmdir()  # whoever listens last


def _open_mailbox(database: str) -> tuple[Path | None, socket.socket | None]:
    folder = mailboxes(database)
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_ours(folder):
        logger.warning("doorbell: %s is not this user's own folder; changes are noticed by looking", folder)
        return None, None
    path = folder / f"{os.getpid()}-{next(_numbers)}"
    mailbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        path.unlink(missing_ok=True)  # a process of the same number may have left it
        mailbox.bind(str(path))
    except OSError as fault:
        logger.warning("doorbell: no mailbox (%s); changes are noticed by looking", fault)
        mailbox.close()
        return None, None
    return path, mailbox


def _read(mailbox: socket.socket, listener: Listener) -> None:
    while True:
        try:
            text = mailbox.recv(_LARGEST_RING_BYTES).decode("utf-8", "replace")
        except OSError:  # empty
            return
        listener(parse(text))


def _watch(database: str, stop: threading.Event, seconds: float, ring: Callable[[], None]) -> None:
    """data_version changes when another connection has committed; looking at it costs no file access."""
    seen = None
    bell: sqlite3.Connection | None = None
    while not stop.wait(seconds):
        try:
            if bell is None:
                bell = sqlite3.connect(database, isolation_level=None, uri=database.startswith("file:"))
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
