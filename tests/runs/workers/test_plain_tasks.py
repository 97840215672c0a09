"""Ordinary django-q2 tasks run beside the runs; whatever they do, they leave one result."""

from __future__ import annotations

import asyncio
import queue
from typing import TYPE_CHECKING, Any

import pytest
from django_q.models import OrmQ

from runs.worker.async_worker import _plain
from runs.worker.host import RunHost

if TYPE_CHECKING:
    from tests.runs.workers.house import House

HERE = "tests.runs.workers.plain_functions"


def outcome(name: str, *arguments: Any, **options: Any) -> dict[str, Any]:
    """What the monitor gets for one task."""
    results: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    task = {"id": "1", "name": "one", "func": f"{HERE}.{name}", "args": arguments, "kwargs": {}, **options}
    asyncio.run(_plain(7, task, results, None))
    return results.get(timeout=0)


@pytest.mark.parametrize("name", ["add", "add_later"])
def test_functions_and_coroutines_give_their_result(db: None, name: str):
    done = outcome(name, 2, 3)
    assert (done["result"], done["success"], done["ack_id"]) == (5, True, 7)
    assert done["stopped"] is not None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fail", "on purpose"),
        ("missing", "is not defined"),
        ("give_something_unsendable", "pickle"),
        ("add", "missing 2 required"),
    ],
)
def test_whatever_goes_wrong_is_a_failure_with_its_words(db: None, name: str, words: str):
    done = outcome(name)
    assert done["success"] is False
    assert words in done["result"]


def test_a_module_that_does_not_import_is_a_failure(db: None):
    results: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    task = {"id": "1", "name": "one", "func": "tests.runs.workers.broken_module.run", "args": (), "kwargs": {}}
    asyncio.run(_plain(7, task, results, None))
    assert results.get(timeout=0)["success"] is False


def test_a_task_that_takes_too_long_is_a_failure(db: None):
    assert outcome("wait_for_ever", timeout=0.01)["success"] is False


def test_a_worker_runs_many_plain_tasks_without_a_pause_between_them(house: House):
    from django_q.tasks import async_task

    for number in range(40):
        async_task(f"{HERE}.add", number, 1)
    results: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    async def serve() -> None:
        host = RunHost(
            slots=4,
            lease_seconds=60,
            max_attempts=3,
            plain_task=lambda queue_id, task: _plain(queue_id, task, results, None),
        )
        async with asyncio.timeout(20):
            await host.serve(stop_asked=lambda: results.qsize() == 40)

    asyncio.run(serve())
    done = [results.get(timeout=0) for _ in range(40)]
    assert sorted(task["result"] for task in done) == list(range(1, 41))
    OrmQ.objects.filter(pk__in=[task["ack_id"] for task in done]).delete()
