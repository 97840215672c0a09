"""A worker that stalls for longer than its lease: what it has itself is never lost to itself."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task

from runs.statuses import ErrorCode, RunStatus
from tests.patience import PATIENCE_SECONDS
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.faults
LEASE_SECONDS = 3


@contextmanager
def stalled(house: House, worker: Worker) -> Iterator[None]:
    """Nothing reaches the worker's database until the block is left and its leases are over.

    It begins just after a renewal, so that the next thing the worker does is to look for work.
    """
    before = set(OrmQ.objects.values_list("pk", "lock"))
    house.until(lambda: set(OrmQ.objects.values_list("pk", "lock")) != before)
    released = threading.Event()
    held = asyncio.run_coroutine_threadsafe(worker.host.database.call(released.wait, PATIENCE_SECONDS), worker._loop)
    worker.wake()
    try:
        yield
        house.until(lambda: not OrmQ.objects.filter(lock__gt=timezone.now()).exists())
    finally:
        released.set()
    assert held.result(PATIENCE_SECONDS)


def test_a_worker_that_stalls_longer_than_its_lease_goes_on_with_what_nobody_took(house: House, model: ScriptedModel):
    script_id, prompt = scripts.gated("go")
    run = house.ask(prompt)
    with Worker(lease_seconds=LEASE_SECONDS, max_attempts=1) as worker:
        house.until_calls(script_id)
        with stalled(house, worker):
            pass
        house.until(lambda: OrmQ.objects.filter(lock__gt=timezone.now()).exists())
        model.open_gate("go")
        house.until_ended(run)
    run = house.again(run)
    assert (run.status, run.error_code, run.attempt, run.lost_workers) == (RunStatus.SUCCESS, "", 1, 0)
    assert len(model.calls_of(script_id)) == 1


def test_a_plain_task_of_a_worker_that_stalls_is_not_begun_again(house: House):
    begun: list[int] = []
    ended = asyncio.Event()

    async def plain(queue_id: int, _task: dict[str, object]) -> None:
        begun.append(queue_id)
        await ended.wait()
        await worker.host.database.call(OrmQ.objects.filter(pk=queue_id).delete)

    async_task("math.sqrt", 4)
    with Worker(lease_seconds=LEASE_SECONDS, plain_task=plain) as worker:
        house.until(lambda: len(begun) == 1)
        with stalled(house, worker):
            pass
        house.until(lambda: OrmQ.objects.filter(lock__gt=timezone.now()).exists())
        worker._loop.call_soon_threadsafe(ended.set)
        house.until(lambda: not OrmQ.objects.exists())
    assert len(begun) == 1


def test_the_end_of_a_run_that_was_taken_from_a_stalled_worker_says_so(house: House):
    script_id, prompt = scripts.gated("never")
    run = house.ask(prompt)
    with Worker(name="stalled", lease_seconds=LEASE_SECONDS) as worker:
        house.until_calls(script_id)
        with stalled(house, worker), Worker(name="other", lease_seconds=LEASE_SECONDS, max_attempts=1):
            house.until_ended(run)
    run = house.again(run)
    assert (run.status, run.error_code, run.stop_detail) == (
        RunStatus.ERROR,
        ErrorCode.WORKER_LOST,
        {"limit": 1, "layer": "runs.max_attempts"},
    )
    assert run.error == "its worker died or did not keep its lease; the last of 1 was stalled"
