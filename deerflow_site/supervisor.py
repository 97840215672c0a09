"""Keeps the web server and the workers running as children of one small process.

Standard library only: this process stays for as long as the product runs, and Django would cost it 40 MB. It is
exec'ed by `manage.py up` and `manage.py demo`:

    python -m deerflow_site.supervisor --child '{"name": "web", "argv": [...], "keep_fds": [5]}' --probe 127.0.0.1:8000

Every child is exec'ed into a session of its own, so Ctrl-C in the terminal reaches only this process. SIGTERM goes
to a child's leader alone (django-q2's cluster hangs when its forks get the signal too); what is left of the groups
after `--stop-seconds` is killed. Exit status: 0 after an orderly stop, 1 when a child failed before all was ready.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runs.worker.parent_watch import SUPERVISOR_VARIABLE, follow

if TYPE_CHECKING:
    from collections.abc import Sequence

_PR_SET_CHILD_SUBREAPER = 36
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 30.0
_STEADY_SECONDS = 60.0  # a child that lived this long starts again with the first backoff
_PROBE_SECONDS = 0.05
_STRAYS_SECONDS = 2.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Child:
    """One process to keep running. `keep_fds` are the open descriptors it inherits."""

    name: str
    argv: list[str]
    keep_fds: list[int] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    backoff_seconds: float = _FIRST_BACKOFF_SECONDS
    due_at: float = 0.0  # when to start it again, while it is down

    def start(self) -> None:
        supervisor_pid = os.getpid()

        def before_exec() -> None:
            if sys.platform == "linux":  # elsewhere a thread would have to look, and exec ends threads
                follow(supervisor_pid)

        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            pass_fds=self.keep_fds,
            start_new_session=True,
            preexec_fn=before_exec,
            env=os.environ | {SUPERVISOR_VARIABLE: str(supervisor_pid)},
        )

    def kill_group(self) -> None:
        """Kill what still belongs to the child's session; its leader may be gone already."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def ended(self, exit_code: int, now: float) -> None:
        self.kill_group()
        if self.process is not None:
            self.process.returncode = exit_code
        self.process = None
        if now - self.started_at >= _STEADY_SECONDS:
            self.backoff_seconds = _FIRST_BACKOFF_SECONDS
        self.due_at = now + self.backoff_seconds
        self.backoff_seconds = min(self.backoff_seconds * 2, _LONGEST_BACKOFF_SECONDS)


class Supervisor:
    """Starts, restarts and stops children until a signal asks it to stop."""

    def __init__(self, children: Sequence[Child], *, probe: str, url: str, stop_seconds: float) -> None:
        self._children = children
        self._probe = probe
        self._url = url
        self._stop_seconds = stop_seconds
        self._ready = not probe
        self._stop_requests = 0
        self._failed = False
        self._began_at = time.monotonic()
        self._wake_fd = _wake_on_signals(self._on_stop_signal)

    def run(self) -> int:
        _adopt_orphans()
        for child in self._children:
            child.start()
        while not self._stop_requests and not self._failed:
            self._wait(self._pause_seconds())
            self._reap()
            self._restart_due()
            self._look_whether_ready()
        self._stop()
        return 1 if self._failed else 0

    def _on_stop_signal(self, _number: int, _frame: object) -> None:
        self._stop_requests += 1
        if self._stop_requests > 1:  # asked twice: somebody does not want to wait
            for child in self._children:
                child.kill_group()

    def _pause_seconds(self) -> float:
        if not self._ready:
            return _PROBE_SECONDS
        due = [child.due_at for child in self._children if child.process is None]
        return max(0.0, min(due) - time.monotonic()) if due else 3600.0

    def _wait(self, seconds: float) -> None:
        """Sleep, but no longer than until the next signal."""
        readable, _, _ = select.select([self._wake_fd], [], [], seconds)
        if readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_fd, 4096)

    def _reap(self) -> None:
        """Collect ended processes: children, and the orphans that became ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self._children:
                if child.process is not None and child.process.pid == pid:
                    self._child_ended(child, os.waitstatus_to_exitcode(status))

    def _child_ended(self, child: Child, exit_code: int) -> None:
        child.ended(exit_code, time.monotonic())
        if self._stop_requests or self._failed:
            return
        if not self._ready:
            self._failed = True
            say(f"{child.name} stopped before it was ready ({_in_words(exit_code)}); see the lines above.")
        else:
            pause = child.due_at - time.monotonic()
            say(f"{child.name} stopped ({_in_words(exit_code)}); starting again in {pause:.0f} s.")

    def _restart_due(self) -> None:
        if self._failed or self._stop_requests:
            return
        for child in self._children:
            if child.process is None and child.due_at <= time.monotonic():
                child.start()

    def _look_whether_ready(self) -> None:
        if not self._ready and not self._failed and not self._stop_requests and answers(self._probe):
            self._ready = True
            took = time.monotonic() - self._began_at
            say(f"Ready after {took:.1f} s: {self._url}   (Ctrl-C stops)")

    def _stop(self) -> None:
        say("Stopping …")
        for child in self._children:
            if child.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.process.pid, signal.SIGTERM)
        deadline = time.monotonic() + self._stop_seconds
        while any(child.process for child in self._children) and time.monotonic() < deadline:
            self._wait(max(0.0, deadline - time.monotonic()))
            self._reap()
        for child in self._children:
            if child.process is not None:
                say(f"{child.name} did not stop within {self._stop_seconds:.0f} s and was killed.")
            child.kill_group()
        self._end_strays()
        say("Stopped.")

    def _end_strays(self) -> None:
        """Kill whatever descendant is still there: a process that left its group was handed to us when orphaned."""
        deadline = time.monotonic() + _STRAYS_SECONDS
        while time.monotonic() < deadline:
            self._reap()
            pids = _child_pids()
            if not pids:
                return
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._wait(0.05)


def answers(address: str) -> bool:
    """Whether GET /healthz at `host:port` is answered with 200 within a second."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=1) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b" 200 " in connection.recv(64)
    except OSError:
        return False


def say(text: str) -> None:
    # On a terminal the line may hold "^C" or half a prompt: start on a clean one.
    clean_line = "\r\033[K" if sys.stdout.isatty() else ""
    with contextlib.suppress(OSError):  # the reader of our output may be gone, which must not keep us from stopping
        print(f"{clean_line}{text}", flush=True)


def _in_words(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit status {exit_code}"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"


def _wake_on_signals(on_stop: object) -> int:
    """Install the handlers; returns a descriptor that becomes readable at each signal."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    os.set_blocking(write_fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    for number in _STOP_SIGNALS:
        signal.signal(number, on_stop)  # type: ignore[arg-type]
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return read_fd


def _adopt_orphans() -> None:
    """Become the new parent of orphaned descendants, so that `_end_strays` finds them (Linux only)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _child_pids() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123 - no pathlib here
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="deerflow_site.supervisor")
    parser.add_argument("--child", action="append", required=True, help="JSON: name, argv, keep_fds")
    parser.add_argument("--probe", default="", help="host:port whose /healthz says that all is ready")
    parser.add_argument("--url", default="")
    parser.add_argument("--stop-seconds", type=float, default=20.0)
    options = parser.parse_args(arguments)
    children = [Child(**json.loads(text)) for text in options.child]
    supervisor = Supervisor(children, probe=options.probe, url=options.url, stop_seconds=options.stop_seconds)
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
