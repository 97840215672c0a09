"""Servers under measurement: start, wait until ready, watch memory and CPU, stop."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import aiohttp
import psutil

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

PSS_LINE = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
SAMPLE_SECONDS = 0.2
STOP_SECONDS = 15.0


class ServerFailed(Exception):
    """A server ended or did not answer in time."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """A process tree with one root, whose output goes to a file."""

    def __init__(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> None:
        self.name, self.log = name, log
        self._argv, self._env, self._cwd = list(argv), dict(env), cwd
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv,
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_error: object) -> None:
        """Ask the root, and only the root, to stop: its children are its own business. Then insist."""
        processes = self.processes()
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self._process:
            self._process.wait()

    async def wait_until(self, url: str, timeout_seconds: float = 60.0) -> float:
        """Poll until the URL answers 200. Answers the seconds that took. Raises ServerFailed."""
        started_at = time.monotonic()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while time.monotonic() - started_at < timeout_seconds:
                self._raise_if_ended()
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(url) as response:
                        if response.status == 200:
                            return time.monotonic() - started_at
                await asyncio.sleep(0.02)
        raise ServerFailed(f"{self.name} does not answer at {url}; its log is {self.log}\n{self.tail()}")

    async def first_line(self, pattern: str, timeout_seconds: float = 30.0) -> str:
        """The pattern's group in the process's output, once it is there. Raises ServerFailed."""
        started_at = time.monotonic()
        while time.monotonic() - started_at < timeout_seconds:
            found = re.search(pattern, self.log.read_text(errors="replace"))
            if found:
                return found[1]
            self._raise_if_ended()
            await asyncio.sleep(0.02)
        raise ServerFailed(f"{self.name} did not say where it listens; its log is {self.log}\n{self.tail()}")

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def processes(self) -> list[psutil.Process]:
        if not self._process:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self._process.pid)
            return [root, *root.children(recursive=True)]
        return []

    def pss_bytes(self) -> int:
        """Memory of the tree, pages shared by forked processes counted once."""
        return sum(_pss_bytes(process.pid) for process in self.processes())

    def pss_bytes_of(self, word: str) -> int:
        """Memory of those processes of the tree whose command line has the word."""
        found = 0
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                found += _pss_bytes(process.pid) if word in " ".join(process.cmdline()) else 0
        return found

    def cpu_seconds(self) -> float:
        """CPU time of the tree, children that have ended and were waited for included."""
        total = 0.0
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    @contextlib.asynccontextmanager
    async def peak(self) -> AsyncIterator[Peak]:
        """The highest PSS while the block runs, sampled in a thread beside it."""
        peak = Peak()
        sampler = asyncio.create_task(self._sample(peak))
        try:
            yield peak
        finally:
            sampler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sampler

    async def _sample(self, peak: Peak) -> None:
        while True:
            peak.pss_bytes = max(peak.pss_bytes, await asyncio.to_thread(self.pss_bytes))
            await asyncio.sleep(SAMPLE_SECONDS)

    def _raise_if_ended(self) -> None:
        if self._process and self._process.poll() is not None:
            raise ServerFailed(f"{self.name} exited with {self._process.returncode}\n{self.tail()}")


class Peak:
    """A high-water mark."""

    pss_bytes: int = 0


def _pss_bytes(pid: int) -> int:
    try:
        found = PSS_LINE.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:  # it has ended, or is a zombie without memory
        return 0
    return int(found[1]) * 1024 if found else 0
