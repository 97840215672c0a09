"""What plain django-q2 tasks of the tests run."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path


def add(left: int, right: int) -> int:
    return left + right


async def add_later(left: int, right: int) -> int:
    await asyncio.sleep(0)
    return left + right


def fail() -> None:
    raise ValueError("on purpose")


def give_something_unsendable() -> object:
    return lambda: None


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def stall_the_loop(started_file: str) -> None:
    """Holds the whole event loop, as no coroutine should."""
    with Path(started_file).open("a", encoding="utf-8") as file:
        file.write("x")
    if len(Path(started_file).read_text(encoding="utf-8")) == 1:
        time.sleep(600)
