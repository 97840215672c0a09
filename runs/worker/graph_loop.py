"""The event loop on which graphs work, one for each worker process, in a thread of its own.

A node of somebody's graph may block. On a loop of its own it delays other graphs at most: leases and runs go on.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

Result = TypeVar("Result")
_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def graph_loop() -> asyncio.AbstractEventLoop:
    """The loop, started when it is first asked for. It ends with the process."""
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="graphs", daemon=True).start()
            _loops.append(loop)
        return _loops[0]


async def on_graph_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Do `work` there and wait for it. Cancelling this cancels it, without waiting until it has noticed.

    A cancellation of its own making comes out as GaveUp: it is no wish of ours.
    """
    future = asyncio.run_coroutine_threadsafe(work, graph_loop())
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            raise GaveUp("a node was cancelled from within") from None
        raise


class GaveUp(Exception):
    """A graph that cancelled itself."""
