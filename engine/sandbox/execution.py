"""Runs one process group within limits, and leaves nothing of it behind."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from engine.sandbox.base import CommandLimits, CommandResult
from engine.sandbox.output import OutputWindow
from engine.sandbox.processes import ProcessTree, is_first_in_namespace, marked_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_WATCH_INTERVAL_SECONDS: Final = 0.1
_CLOSE_INTERVAL_SECONDS: Final = 0.01
_CLOSE_DEADLINE_SECONDS: Final = 5.0
_CHUNK_BYTES: Final = 1 << 16
_CHILD_PID: Final = re.compile(rb'"child-pid": (\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start: an explicit argv, the whole environment, and files handed down.

    `mark` is a `NAME=value` of `environment` by which processes that slipped out of the
    tree are found again; None where a process namespace already holds them together.
    `init_fd` can be read for the JSON in which bubblewrap names that namespace's first
    process: the command may end before the tree was ever looked at, and then only this
    says whose end is the end of all.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    pass_fds: tuple[int, ...] = ()
    mark: bytes | None = None
    init_fd: int | None = None


async def execute(launch: Launch, *, timeout_seconds: float, output_limit: int, limits: CommandLimits) -> CommandResult:
    """Start, watch and end one command; every process of it is gone when this returns or raises.

    Raises OSError when the program cannot be started.
    """
    # Not asyncio's subprocess: its wait() depends on the loop in use and, in some releases, on
    # the pipes too, so a background process that holds the output would keep the call open.
    process = subprocess.Popen(
        list(launch.argv),
        env=dict(launch.environment),
        cwd=launch.folder,
        pass_fds=launch.pass_fds,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        execution = _Execution(process, process.stdout, OutputWindow(output_limit), limits, launch)
    except BaseException:
        process.kill()
        process.wait()
        process.stdout.close()
        raise
    timed_out = False
    stopped_because = ""
    try:
        async with asyncio.timeout(timeout_seconds):
            stopped_because = await execution.ended
    except TimeoutError:
        timed_out = True
        stopped_because = f"it ran longer than {timeout_seconds:g} s"
    finally:
        await execution.close()
    return CommandResult(
        exit_code=None if stopped_because else _shell_code(process.returncode),
        output=execution.output.text(),
        truncated=execution.output.cut_bytes > 0,
        timed_out=timed_out,
        stopped_because=stopped_because,
    )


class _Execution:
    """One started process: its output, its end, and the watch over what it uses."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdout: IO[bytes],
        output: OutputWindow,
        limits: CommandLimits,
        launch: Launch,
    ) -> None:
        self._process = process
        self._stdout = stdout
        self._limits = limits
        self._mark = launch.mark
        self._init_fd = launch.init_fd
        self._tree = ProcessTree(process.pid)
        self._loop = asyncio.get_running_loop()
        self.output = output
        self.ended: asyncio.Future[str] = self._loop.create_future()
        os.set_blocking(stdout.fileno(), False)
        self._exit_fd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._exit_fd, self._end, "")
        self._loop.add_reader(stdout.fileno(), self._read)
        self._watch_timer = self._loop.call_soon(self._watch)

    async def close(self) -> None:
        """End every process, take what output is left and free the descriptors.

        The first kill happens before the first await, so a second cancel cannot prevent it.
        """
        self._watch_timer.cancel()
        self._loop.remove_reader(self._exit_fd)
        self._loop.remove_reader(self._stdout.fileno())
        try:
            self._kill()
            deadline = self._loop.time() + _CLOSE_DEADLINE_SECONDS
            while not self._all_gone() and self._loop.time() < deadline:
                await asyncio.sleep(_CLOSE_INTERVAL_SECONDS)
                self._kill()
            self._drain()
        finally:
            os.close(self._exit_fd)
            self._stdout.close()

    def _end(self, reason: str) -> None:
        self._loop.remove_reader(self._exit_fd)
        if not self.ended.done():
            self.ended.set_result(reason)

    def _read(self) -> None:
        if not self._take_chunk():
            self._loop.remove_reader(self._stdout.fileno())
        if self.output.total > self._limits.output_bytes:
            self._loop.remove_reader(self._stdout.fileno())
            self._end(f"it printed more than {_in_megabytes(self._limits.output_bytes)}")

    def _take_chunk(self) -> bool:
        """Read once; False when nothing more will come, or nothing is there now."""
        try:
            chunk = os.read(self._stdout.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        self.output.add(chunk)
        return bool(chunk)

    def _drain(self) -> None:
        while self.output.total <= self._limits.output_bytes and self._take_chunk():
            pass

    def _watch(self) -> None:
        try:
            alive = self._tree.refresh()
            used = self._tree.memory_bytes(above=self._limits.memory_bytes)
        except OSError as error:
            self._end(f"its processes could not be watched ({error.strerror})")
            return
        if used > self._limits.memory_bytes:
            self._end(f"it used more than {_in_megabytes(self._limits.memory_bytes)} of memory")
        elif len(alive) > self._limits.processes:
            self._end(f"it started more than {self._limits.processes} processes")
        else:
            self._watch_timer = self._loop.call_later(_WATCH_INTERVAL_SECONDS, self._watch)

    def _kill(self) -> None:
        self._find_init()
        self._tree.kill()
        if self._mark is not None:
            for pid in marked_processes(self._mark):
                self._tree.adopt(pid)
            self._tree.kill()

    def _find_init(self) -> None:
        """Take the namespace's first process into the tree, once bubblewrap has said which it is."""
        if self._init_fd is None:
            return
        with suppress(BlockingIOError):
            # It comes first and in one piece; the rest may still be on its way.
            found = _CHILD_PID.search(os.read(self._init_fd, _CHUNK_BYTES))
            self._init_fd = None
            # The number may be another process's by now; that one would not be first in a namespace.
            if found and is_first_in_namespace(int(found[1])):
                self._tree.adopt(int(found[1]))

    def _all_gone(self) -> bool:
        return self._process.poll() is not None and not self._tree.refresh()


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors, those that are closed already too."""
    for fd in fds:
        with suppress(OSError):
            os.close(fd)


def limited_shell(limits: CommandLimits, *, cpu_seconds: int, count_processes: bool) -> Callable[[str], list[str]]:
    """Return a function that turns a command into an argv running it below the per-process limits.

    The limits are set by a first shell and not before the program starts: inside a user
    namespace the count of processes is then the command's own and not the whole user's.
    Data is bounded rather than address space, which runtimes reserve far beyond their use.
    """
    settings = {
        "-f": limits.file_bytes // 1024,
        "-d": limits.memory_bytes // 1024,
        "-n": limits.open_files,
        "-t": cpu_seconds,
        "-c": 0,
    }
    if count_processes:
        settings["-u"] = limits.processes
    script = " && ".join(f"ulimit {option} {value}" for option, value in settings.items())
    # Below everything else on the machine: a busy command must not make a worker miss its lease.
    script += ' && exec nice -n 10 /bin/bash --noprofile --norc -c "$1"'
    return lambda command: ["/bin/bash", "--noprofile", "--norc", "-c", script, "bash", command]


def _in_megabytes(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MiB"


def _shell_code(code: int) -> int:
    return 128 - code if code < 0 else code
