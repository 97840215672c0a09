"""Real `manage.py qcluster` processes for tests: started, looked into, hurt."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runs.models import WorkerHeartbeat
from tests.patience import PATIENCE_SECONDS
from tests.site.processes import BASE_DIR, Spoken, alive, descendants, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

QCLUSTER = [sys.executable, str(BASE_DIR / "manage.py"), "qcluster"]


def worker_pids() -> list[int]:
    """The worker processes that have said they live, oldest first."""
    return [int(row.name.rpartition(":")[2]) for row in WorkerHeartbeat.objects.order_by("started_at", "name")]


@dataclass(slots=True)
class Clusters:
    """What is needed to start clusters of one test; whatever is left of them ends with the test."""

    environment: dict[str, str]
    started: list[Spoken]

    def start(self, *, workers: int = 1, argv: list[str] | None = None) -> Spoken:
        """Start one and wait until its workers have said that they live."""
        before = len(worker_pids())
        spoken = Spoken(argv or QCLUSTER, {**self.environment, "RUN_WORKERS": str(workers)})
        self.started.append(spoken)
        if not eventually(lambda: len(worker_pids()) >= before + workers):
            spoken.close()
            raise AssertionError(f"the workers did not come up: {spoken.text}")
        return spoken


@contextlib.contextmanager
def clusters(environment: dict[str, str]) -> Iterator[Clusters]:
    group = Clusters(environment, [])
    try:
        yield group
    finally:
        for spoken in group.started:
            with contextlib.suppress(ProcessLookupError):
                spoken.close()


def workers_of(spoken: Spoken) -> list[int]:
    """The ids of a cluster's worker processes."""
    below = set(descendants(spoken.pid))
    return [pid for pid in worker_pids() if pid in below]


@contextlib.contextmanager
def frozen(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def all_gone(pids: list[int], seconds: float = PATIENCE_SECONDS) -> bool:
    return eventually(lambda: not any(alive(pid) for pid in pids), seconds)
