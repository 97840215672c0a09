"""The seam to django-q2: cluster, sentinel, monitor, tables and admin stay; its worker function becomes an event loop.

django-q2 runs one task per process, never runs a coroutine and notices a dead worker only after the longest task's
time. It looks up `worker` and `pusher` as globals of django_q.cluster whenever it spawns a process, so replacing these
two names is all; a test fails when that moves, and the version is pinned.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import pickle
import pydoc
import queue
import sys
import traceback
from typing import TYPE_CHECKING, Any

import django_q.cluster
from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone
from django_q.conf import Conf
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute

from runs.worker.host import RunHost
from runs.worker.parent_watch import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.config.schema import RunsConfig

logger = logging.getLogger(__name__)
STALLED_LEASES = 2  # the sentinel ends a worker whose loop has stalled for so long: others have its runs by then
SWITCH_SECONDS = 0.0005
GRACE_SECONDS = 5.0  # how long running runs may go on after a stop was asked for


def install() -> None:
    """Make django-q2's clusters of this process run our worker, with the agent stack loaded once before they fork."""
    preload()
    django_q.cluster.worker = worker
    django_q.cluster.pusher = idle_pusher


def preload() -> None:
    """Import what every worker needs, so that forked processes share the pages; nothing here opens a connection."""
    from engine.preload import preload_engine
    from runs.worker import loopback
    from subagents import registry

    preload_engine(registry.current().config)
    loopback.connect()
    gc.collect()
    gc.freeze()


def idle_pusher(task_queue: Any, event: Any, broker: Any = None) -> None:
    """Workers take rows themselves, only as many as they can execute: there is nothing to push."""
    die_with_parent()
    event.wait()


def worker(task_queue: Any, result_queue: Any, timer: Any, timeout: int | None = None) -> None:
    """One worker process, with the signature django-q2 calls."""
    die_with_parent()
    # The database thread and the event loop hand work to each other many times a run; at Python's 5 ms each would wait
    # that long for the other one's turn to end.
    sys.setswitchinterval(SWITCH_SECONDS)
    post_spawn.send(sender="django_q", proc_name="runs")
    from subagents import registry

    config = registry.current().config.runs  # before the loop: it may read the database
    plain_timeout = timeout if timeout and timeout > 0 else None
    _run_loop(lambda: _serve(task_queue, result_queue, timer, config, plain_timeout))
    timer.value = -1


def _run_loop(main: Callable[[], Any]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())


async def _serve(
    task_queue: Any, result_queue: Any, timer: Any, config: RunsConfig, plain_timeout: float | None
) -> None:
    host = RunHost(
        slots=config.slots_per_worker,
        lease_seconds=settings.LEASE_SECONDS,
        max_attempts=config.max_attempts,
        grace_seconds=GRACE_SECONDS,
        plain_task=lambda queue_id, task: _plain(queue_id, task, result_queue, plain_timeout),
    )
    stopping = False

    def stop_asked() -> bool:
        nonlocal stopping
        if not stopping and task_queue.qsize() > 0:
            with contextlib.suppress(queue.Empty):  # another worker of this cluster was faster
                task_queue.get(block=False)  # the pill that says STOP
                stopping = True
        return stopping

    def tick() -> None:
        timer.value = STALLED_LEASES * settings.LEASE_SECONDS

    await host.serve(stop_asked=stop_asked, tick=tick)


async def _plain(queue_id: int, task: dict[str, Any], result_queue: Any, timeout: float | None) -> None:
    """A plain django-q2 task: coroutines on the loop, functions in a thread; django-q2's monitor stores the result."""
    function: Any = None
    try:
        limit = task.pop("timeout", timeout)
        function = task["func"] if callable(task["func"]) else pydoc.locate(task["func"])
        pre_execute.send(sender="django_q", func=function, task=task)
        if not callable(function):
            raise ValueError(f"Function {task['func']} is not defined")
        if inspect.iscoroutinefunction(function):
            work = function(*task["args"], **task["kwargs"])
        else:
            work = asyncio.to_thread(_with_fresh_connections, function, task["args"], task["kwargs"])
        result = await asyncio.wait_for(work, limit if limit and limit > 0 else None)
        pickle.dumps(result)  # the queue would drop in silence what cannot be sent, and the task would run for ever
        task.update(result=result, success=True)
    except Exception as fault:  # noqa: BLE001 - whatever a task raises is its result
        task.update(result=f"{fault} : {traceback.format_exc()}", success=False)
    task.update(stopped=timezone.now(), cluster=Conf.CLUSTER_NAME, ack_id=queue_id)
    post_execute_in_worker.send(sender="django_q", func=function, task=task)
    result_queue.put(task)


def _with_fresh_connections(function: Callable[..., Any], arguments: Any, named: Any) -> Any:
    close_old_connections()
    try:
        return function(*arguments, **named)
    finally:
        close_old_connections()
