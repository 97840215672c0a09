"""Real processes for tests of supervision: start, read what they say, see who is left."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BASE_DIR = Path(__file__).resolve().parents[2]


def readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, or the end, within the time; of any descriptor, also beyond 1,023."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


class Spoken:
    """A started process whose output is read line by line, with a deadline instead of a sleep."""

    def __init__(
        self, argv: list[str], environment: dict[str, str] | None = None, *, pass_fds: tuple[int, ...] = ()
    ) -> None:
        self.process = subprocess.Popen(
            argv,
            cwd=BASE_DIR,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self.text = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for(self, wanted: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Everything said until `wanted` was."""
        return self.wait_for_times(wanted, 1, seconds)

    def wait_for_times(self, wanted: str, times: int, seconds: float = PATIENCE_SECONDS) -> str:
        stream = self.process.stdout
        assert stream is not None
        deadline = time.monotonic() + seconds
        while self.text.count(wanted) < times:
            ready = readable(stream.fileno(), max(0.0, deadline - time.monotonic()))
            piece = os.read(stream.fileno(), 65_536) if ready else b""
            if not piece:
                raise AssertionError(f"never said {wanted!r}; said:\n{self.text}")
            self.text += piece.decode("utf-8", "replace")
        return self.text

    def end(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until it ended; returns its exit status, its last words are in `text`."""
        stream = self.process.stdout
        assert stream is not None
        self.process.wait(seconds)
        os.set_blocking(stream.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(stream.fileno(), 65_536):
                self.text += piece.decode("utf-8", "replace")
        return self.process.returncode

    def close(self) -> None:
        for pid in [*descendants(self.pid), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def started(argv: list[str], environment: dict[str, str] | None = None) -> Iterator[Spoken]:
    spoken = Spoken(argv, environment)
    try:
        yield spoken
    finally:
        spoken.close()


def supervisor(children: dict[str, list[str]], *arguments: str) -> list[str]:
    """The command line that supervises the named commands."""
    argv = [sys.executable, "-m", "deerflow_site.supervisor", *arguments]
    for name, command in children.items():
        argv += ["--child", json.dumps({"name": name, "argv": command})]
    return argv


def descendants(pid: int) -> list[int]:
    """Ids of every living process below `pid`."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents[int(entry.name)] = int(fields[1])
    found: list[int] = []
    waiting = [pid]
    while waiting:
        above = waiting.pop()
        below = [child for child, parent in parents.items() if parent == above]
        found += below
        waiting += below
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Poll an outside fact that has no event of its own; False when it did not come true in time."""
    deadline = time.monotonic() + seconds
    pause = select.poll()
    while time.monotonic() < deadline:
        if condition():
            return True
        pause.poll(10)
    return condition()
