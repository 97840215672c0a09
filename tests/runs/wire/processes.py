"""The product beside a test as it runs for real: a web process under uvicorn, and a cluster of worker processes."""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Self

from deerflow_site.supervisor import answers
from tests.patience import PATIENCE_SECONDS
from tests.runs.workers.clusters import QCLUSTER, workers_of
from tests.site.processes import Spoken, eventually

_UVICORN = (sys.executable, "-m", "uvicorn", "deerflow_site.asgi:application", "--loop", "uvloop")
_QUIET = ("--http", "httptools", "--lifespan", "on", "--no-access-log", "--log-level", "warning")


class WebProcess:
    """`deerflow_site.asgi` as `manage.py up` starts it. Its address outlives a restart."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._listener.set_inheritable(True)
        self.port: int = self._listener.getsockname()[1]
        self._running: Spoken | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/langgraph"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_fault: object) -> None:
        self.end(signal.SIGKILL)
        self._listener.close()

    def start(self) -> None:
        descriptor = self._listener.fileno()
        argv = [*_UVICORN, *_QUIET, "--fd", str(descriptor), "--timeout-graceful-shutdown", "2"]
        self._running = Spoken(argv, self._environment, pass_fds=(descriptor,))
        if not eventually(lambda: answers(f"127.0.0.1:{self.port}")):
            raise AssertionError(f"the web process does not answer: {self._running.text}")

    def end(self, number: int) -> None:
        """Send it a signal and wait until it is gone. New connections wait in the listener's queue."""
        running, self._running = self._running, None
        if running is not None:
            os.kill(running.pid, number)
            running.process.wait(PATIENCE_SECONDS)
            running.close()


class WorkerProcesses:
    """`manage.py qcluster` with two workers."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = {**environment, "RUN_WORKERS": "2"}
        self._cluster: Spoken | None = None

    def __enter__(self) -> Self:
        self._cluster = Spoken(QCLUSTER, self._environment)
        if not eventually(lambda: len(self.pids()) == 2):
            raise AssertionError(f"the workers did not come up: {self._cluster.text}")
        return self

    def __exit__(self, *_fault: object) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def pids(self) -> list[int]:
        """Of the workers that have said they live; a killed one is replaced by the cluster."""
        assert self._cluster is not None
        return workers_of(self._cluster)

    def kill(self, name: str) -> None:
        """SIGKILL the worker of this name (host:pid)."""
        pid = int(name.rpartition(":")[2])
        assert pid in self.pids(), f"{name} is not one of ours"
        os.kill(pid, signal.SIGKILL)
