"""The bell of SQLite's processes: datagrams with words, and looking where there are none."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from django.db import connection

from runs.doorbell import EVERYTHING, Ring, payloads
from runs.doorbell import sqlite as bell
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).resolve().parents[3]
ANOTHER_PROCESS = """
import socket, sys
folder, *texts = sys.argv[1:]
import os
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
    for name in os.listdir(folder):
        for text in texts:
            sender.sendto(text.encode(), f"{folder}/{name}")
"""


@pytest.fixture
def database(tmp_path, monkeypatch) -> str:
    """An SQLite file of its own, whatever the suite runs on."""
    name = str(tmp_path / "own.sqlite3")
    with sqlite3.connect(name) as own:
        own.execute("PRAGMA journal_mode=WAL")
        own.execute("CREATE TABLE t (x)")
    monkeypatch.setitem(connection.settings_dict, "NAME", name)
    return name


@pytest.fixture
def folder(database) -> Path:
    made = bell.mailboxes(database)
    made.mkdir(mode=0o700)
    return made


@asynccontextmanager
async def listening() -> AsyncIterator[asyncio.Queue[Ring]]:
    heard: asyncio.Queue[Ring] = asyncio.Queue()
    listener = asyncio.create_task(bell.listen(heard.put_nowait))
    await heard.get()  # the first look: from now on it hears
    try:
        yield heard
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)


async def test_another_processs_commit_is_heard_in_words(database):
    ring = Ring(threads=frozenset({uuid4()}), queue=True)
    async with listening() as heard:
        argv = [sys.executable, "-c", ANOTHER_PROCESS, str(bell.mailboxes(database)), *payloads(ring)]
        await asyncio.to_thread(subprocess.run, argv, check=True, cwd=ROOT)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert {await heard.get(), await heard.get()} == {Ring(queue=True), Ring(threads=ring.threads)}


async def test_a_commit_whose_datagram_was_lost_is_noticed_by_looking(database):
    async with listening() as heard:
        with sqlite3.connect(database) as other:
            other.execute("INSERT INTO t VALUES (1)")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await heard.get() == EVERYTHING


async def test_listeners_take_their_mailboxes_down_and_the_last_one_the_folder(database):
    folder = bell.mailboxes(database)
    async with listening():
        async with listening():
            assert len(list(folder.iterdir())) == 2
        assert len(list(folder.iterdir())) == 1
    assert not folder.exists()


def test_the_mailbox_of_a_process_that_was_killed_is_removed_by_the_next_ring(folder):
    left = folder / "1-0"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))
    bell.send(["q"])
    assert not left.exists()
    folder.rmdir()


def test_a_full_mailbox_and_a_folder_that_is_gone_are_no_reason_to_fail(folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(folder / "1-0"))
        bell.send(["q"] * 2000)
    (folder / "1-0").unlink()
    folder.rmdir()
    bell.send(["q"])


async def test_in_a_folder_that_others_may_write_to_nobody_listens_but_changes_are_noticed(database, folder):
    folder.chmod(0o777)
    async with listening() as heard:
        assert list(folder.iterdir()) == []
        with sqlite3.connect(database) as other:
            other.execute("INSERT INTO t VALUES (1)")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await heard.get() == EVERYTHING
    folder.rmdir()


async def test_a_link_in_the_folders_place_is_not_followed(database, tmp_path):
    folder = bell.mailboxes(database)
    folder.symlink_to(tmp_path, target_is_directory=True)
    async with listening():
        assert [found.name for found in tmp_path.iterdir() if found.is_socket()] == []
    folder.unlink()
