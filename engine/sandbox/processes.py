"""Reads a command's processes from /proc: who they are, what they use, and how to end them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.reasons import Reason
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Iterator

CHILDREN_NOT_LISTED: Final = Reason(
    _("This system does not list the children of a process, so commands could not be bounded.")
)
_PROC: Final = Path("/proc")
_GONE: Final = (FileNotFoundError, ProcessLookupError)
_START_TIME_FIELD: Final = 19  # of /proc/<pid>/stat, counted from the field after the command's name
_ANONYMOUS_FIELDS: Final = (b"RssAnon:", b"RssShmem:")


class ProcessTree:
    """The processes that descend from one leader, each told from a later process with its number.

    A process once seen stays known after its parent has died, so a child that changed its
    parent or its session is still counted and still ended.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._known: dict[int, str] = {}
        self._remember(leader)

    def refresh(self) -> tuple[int, ...]:
        """Look for new descendants and return the numbers of all that live."""
        self._known = {pid: start for pid, start in self._known.items() if _start_time(pid) == start}
        waiting = list(self._known)
        while waiting:
            children = _children(waiting.pop())
            waiting.extend(child for child in children if child not in self._known and self._remember(child))
        return tuple(self._known)

    def adopt(self, pid: int) -> None:
        """Count a process in although it does not descend from the leader."""
        self._remember(pid)

    def memory_bytes(self, *, above: int) -> int:
        """Return the memory all known processes hold that no file backs.

        The quick sum counts pages shared after a fork once per process. Only when it is
        over `above` is the exact, slower proportional sum taken.
        """
        quick = sum(map(_anonymous_bytes, self._known))
        return quick if quick <= above else sum(map(_proportional_bytes, self._known))

    def kill(self) -> None:
        """Send SIGKILL to the leader's process group and to every known process."""
        if self._leader in self._known:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGKILL)
        for pid in self.refresh():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _remember(self, pid: int) -> bool:
        start = _start_time(pid)
        if start is None:
            return False
        self._known[pid] = start
        return True


def marked_processes(mark: bytes) -> Iterator[int]:
    """Yield the processes whose environment holds `mark`: they were started below the one given it."""
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(*_GONE, PermissionError):
            if mark in (folder / "environ").read_bytes():
                yield int(folder.name)


def is_first_in_namespace(pid: int) -> bool:
    """Whether a process is number 1 in the innermost process namespace it is in."""
    try:
        lines = (_PROC / str(pid) / "status").read_bytes().splitlines()
    except _GONE:
        return False
    return any(line.startswith(b"NSpid:") and line.split()[-1] == b"1" for line in lines)


def children_are_listed() -> bool:
    """Whether the kernel lists a process's children; without that a command could not be bounded."""
    own = os.getpid()
    return (_PROC / f"{own}/task/{own}/children").exists()


def _children(pid: int) -> Iterator[int]:
    with suppress(*_GONE):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with suppress(*_GONE):
                yield from map(int, (thread / "children").read_bytes().split())


def _start_time(pid: int) -> str | None:
    """Return the moment of start in clock ticks; None for a process that is gone or a zombie."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except _GONE:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[_START_TIME_FIELD]


def _anonymous_bytes(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "status").read_bytes().splitlines()
    except _GONE:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_ANONYMOUS_FIELDS))


def _proportional_bytes(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_bytes().splitlines()
    except PermissionError:
        return _anonymous_bytes(pid)
    except _GONE:
        return 0
    wanted = (b"Pss_Anon:", b"Pss_Shmem:")
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted))
