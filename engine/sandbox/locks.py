"""One writer at a time for each file, across threads and processes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from engine.sandbox.errors import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_STRIPES: Final = 256  # names share lock files, so that their number stays bounded
_WAIT_SECONDS: Final = 20.0
_RETRY_SECONDS: Final = 0.01


@contextmanager
def file_lock(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of `name` among all who use the same lock folder.

    Raises WorkspaceError when it is not free within 20 s: a writer needs milliseconds, so
    whoever still holds it is stopped, and waiting longer would only take more threads along.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stripe = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % _STRIPES
    fd = os.open(folder / f"{stripe:03}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(fd, name)
        yield
    finally:
        os.close(fd)


def _acquire(fd: int, name: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WorkspaceError(f'"{name}" is being written by somebody else; try again.') from None
            time.sleep(_RETRY_SECONDS)
        else:
            return
