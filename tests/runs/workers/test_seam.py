"""django-q2's side of the seam: these fail when an upgrade moves what the worker replaces."""

from __future__ import annotations

import gc
import importlib.metadata
import multiprocessing
from typing import TYPE_CHECKING, Any

import django_q.cluster
import pytest
from django_q.cluster import Sentinel

from runs.worker import async_worker
from tests.patience import PATIENCE_SECONDS
from tests.site.processes import BASE_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def seam() -> Iterator[None]:
    before = django_q.cluster.worker, django_q.cluster.pusher
    yield
    django_q.cluster.worker, django_q.cluster.pusher = before
    gc.unfreeze()


def test_the_version_the_seam_was_made_for_is_the_pinned_one():
    installed = importlib.metadata.version("django-q2")
    assert installed == "1.11.1"
    for name in ("requirements.txt", "constraints.txt"):
        lines = (BASE_DIR / name).read_text().splitlines()
        assert f"django-q2=={installed}" in [line.partition("#")[0].strip() for line in lines]


def _say_worker(task_queue: Any, result_queue: Any, timer: Any, timeout: Any) -> None:
    result_queue.put(("worker", timeout))


def _say_pusher(task_queue: Any, event: Any, broker: Any) -> None:
    event.set()


def test_a_sentinel_spawns_whatever_the_modules_globals_name(seam: None):
    django_q.cluster.worker, django_q.cluster.pusher = _say_worker, _say_pusher
    sentinel = Sentinel(
        multiprocessing.Event(), multiprocessing.Event(), "0" * 32, broker=_NoBroker(), timeout=7, start=False
    )
    sentinel.spawn_worker()
    (process,) = sentinel.pool
    assert sentinel.result_queue.get(timeout=PATIENCE_SECONDS) == ("worker", 7)
    assert process.timer.value == -1
    process.join(PATIENCE_SECONDS)
    pusher = sentinel.spawn_pusher()
    assert sentinel.event_out.wait(PATIENCE_SECONDS)
    pusher.join(PATIENCE_SECONDS)


class _NoBroker:
    list_key = "tests"


def test_installing_replaces_both_globals(seam: None, db: None):
    async_worker.install()
    assert django_q.cluster.worker is async_worker.worker
    assert django_q.cluster.pusher is async_worker.idle_pusher
