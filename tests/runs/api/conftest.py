from __future__ import annotations

from typing import Any

import pytest

from access import allowance
from runs.models import Run, Thread
from tests.access.calling import Api, caller
from tests.runs.factories import ThreadFactory, started


@pytest.fixture(autouse=True)
def full_allowance() -> None:
    allowance.forget()


@pytest.fixture
def api(db: None) -> Api:
    """A program of somebody without any permission, which may work."""
    return caller(scopes=("run",))


@pytest.fixture
def thread(api: Api) -> Any:
    return ThreadFactory(owner=api.user)


@pytest.fixture
def run(thread: Thread) -> Run:
    """A run of the caller that waits for a worker."""
    return started(thread, "Compare three apps")


def capped(run: Run, **fields: Any) -> Run:
    """As if a turn limit of 10 had ended the run."""
    detail = {"limit": 10, "layer": "runs.max_turns"}
    ended = {"status": "success", "stop_reason": "turn_capped", "stop_detail": detail, "ended_at": run.created_at}
    Run.objects.filter(pk=run.pk).update(queue_id=None, **ended, **fields)
    Thread.objects.filter(pk=run.thread_id).update(status="idle")
    return Run.objects.get(pk=run.pk)
