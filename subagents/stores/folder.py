"""A folder of small files that several processes change: whole files or none, one writer at a time.

Decision: the lock is flock(2) itself, which the package filelock only wraps: it goes with its process, holds between
threads too, because each taking opens the file anew, and works on every file system that the deployment lock of
`deerflow_site.locks` needs already.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from engine.reasons import Reason
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOCK: Final = ".lock"
_TEMPORARY: Final = re.compile(r"\..+\.tmp")
_IGNORED: Final = re.compile(r"\..*|.*~|.*\.tmp|.*\.sw[a-z]|#.*#", re.DOTALL)  # hidden files, and those of editors
_WAIT_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.005

Stat = tuple[int, int, int, int, int]


class Folder:
    """Files by name. Every method raises OSError; names come from this folder's own listing or are checked before."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def listing(self) -> dict[str, os.stat_result]:
        """Return what lies here, by name, without following links; nothing when the folder is not there yet."""
        found: dict[str, os.stat_result] = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if not _IGNORED.fullmatch(entry.name):
                        with suppress(FileNotFoundError):  # gone since
                            found[entry.name] = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return {}
        return dict(sorted(found.items()))

    def stat(self, name: str) -> os.stat_result | None:
        """Return the facts of one file without following a link; None when it is not there."""
        try:
            return (self.path / name).lstat()
        except FileNotFoundError:
            return None

    def read(self, name: str, most: int) -> tuple[bytes, os.stat_result]:
        """Return at most `most` bytes of a regular file and its facts as they were before reading."""
        # A link is not followed, and a pipe that took the file's place is not waited for.
        descriptor = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            return file.read(most), facts

    def write(self, name: str, raw: bytes) -> None:
        """Put a file in place of whatever is there, whole or not at all, safe against power failure. Needs the lock."""
        before = self.stat(name)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=self.path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if before is not None:
                    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
                file.write(raw)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, self.path / name)  # noqa: PTH105
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
            raise
        self._sync()

    def remove(self, name: str) -> None:
        """Needs the lock."""
        (self.path / name).unlink()
        self._sync()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for the folder's lock and hold it. Raises TimeoutError when somebody else keeps it for long.

        Makes the folder when it is not there, and takes away what a crashed writer left behind.
        """
        self._make()
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            with (self.path / _LOCK).open("ab") as file:
                self._take(file.fileno(), deadline)
                # The folder may have been taken away and made anew while we waited, its lock with it.
                if self._is_the_lock(file.fileno()):
                    self._tidy()
                    yield
                    return
            self._make()

    def _take(self, descriptor: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    sentence = _("another process has held the lock for %(seconds)s seconds")
                    raise TimeoutError(Reason(sentence, seconds=f"{_WAIT_SECONDS:g}")) from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _is_the_lock(self, descriptor: int) -> bool:
        now, ours = self.stat(_LOCK), os.fstat(descriptor)
        return now is not None and (now.st_ino, now.st_dev) == (ours.st_ino, ours.st_dev)

    def _tidy(self) -> None:
        """Nobody else is writing: a temporary file is what a crash left."""
        for name in os.listdir(self.path):  # noqa: PTH208
            if _TEMPORARY.fullmatch(name):
                with suppress(OSError):
                    (self.path / name).unlink()

    def _make(self) -> None:
        if not self.path.is_dir():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sync(self.path.parent)

    def _sync(self) -> None:
        _sync(self.path)


def settled_facts(found: os.stat_result) -> Stat:
    """Return the facts that change whenever a file does.

    The time of the last change of the inode is among them: no program can set it back, so that a file which was
    rewritten with its old size and modification time is noticed. Where a file system does not keep that time, as
    some mounted object stores do not, only a fresh look notices such a file.
    """
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
