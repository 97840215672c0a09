"""One worker process: claims runs, keeps their leases, executes them on one event loop, gives them back on a stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from runs import clock, queue
from runs.doorbell import Doorbell, Ring
from runs.group_commit import NO_DATABASE, GroupCommit
from runs.lifecycle import claims
from runs.worker import heartbeat, plans, starting, sweep
from runs.worker.children import ChildWatch
from runs.worker.deliveries import Deliveries
from runs.worker.graph_execution import execution_of
from runs.worker.graph_watch import GraphWatch
from runs.worker.slots import Slots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from runs.worker.starting import Ready

logger = logging.getLogger(__name__)
POLL_SECONDS = 0.5
_MOST_PER_CLAIM = 16
_SPREAD_SECONDS_PER_RUN = 0.0002  # the busier a worker, the later it draws
_SPREAD_MOST_SECONDS = 0.01
_BETWEEN_DRAWS_SECONDS = 0.003
_FOR_OTHERS_SECONDS = 0.02
_SWEEP_SECONDS = 5.0
_WEBHOOKS_SECONDS = 1.0

PlainTask = Callable[[int, dict[str, Any]], Coroutine[Any, Any, None]]


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why an execution was cancelled from outside."""

    status: str = ""  # the RunStatus somebody asked for
    by: str = ""
    hand_over: bool = False


class RunHost:
    """Executes runs until told to stop. Everything runs on the loop that constructs it."""

    def __init__(
        self,
        *,
        slots: int,
        lease_seconds: float,
        max_attempts: int,
        grace_seconds: float = 5.0,
        plain_task: PlainTask | None = None,
        name: str = "",
    ) -> None:
        self.name = name or worker_name()
        self.slots = Slots(slots)
        self.database = GroupCommit("runs-db")
        self.children = ChildWatch(self.database, is_here=self._executes)
        self._webhooks = Deliveries(self.database)
        self.waiting = 0  # runs that wait for children and hold no slot
        self._lease_seconds = lease_seconds
        self._max_attempts = max_attempts
        self._grace_seconds = grace_seconds
        self._plain_task = plain_task
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._plain: dict[int, asyncio.Task[None]] = {}
        self._leases: dict[int, datetime] = {}
        self._queue_ids: dict[UUID, int] = {}
        self._stops: dict[UUID, Stop] = {}
        self._rung: set[UUID] = set()  # runs here that a ring said shall stop
        self._wake = asyncio.Event()
        self._looking = self._draining = self._cancel_rang = False
        self._taking = 0  # claims under way
        self._drawing = False
        self._others_until = float("-inf")  # children that were left to other workers are not drawn before
        self._workers = 1
        self._renewed_at = self._swept_at = self._webhooks_at = float("-inf")
        self._bell = Doorbell(self._ring)
        self._graphs = GraphWatch(self.database, self.name)

    # --- what executions ask ------------------------------------------------------------------------------------
    def holds(self, run_id: UUID) -> bool:
        """Whether this process still has the run's lease. Without it nothing may be written, not even "cancelled"."""
        return self._queue_ids.get(run_id) in self._leases

    def _executes(self, run_id: UUID) -> bool:
        return run_id in self._tasks

    def stop_of(self, run_id: UUID) -> Stop | None:
        return self._stops.get(run_id)

    def wake(self) -> None:
        """Look for work now."""
        self._wake.set()

    def give_slot_back(self) -> None:
        """For the next run, which is looked for at once when there was no slot for it."""
        was_full = self.slots.free <= 0
        self.slots.give_back()
        if was_full:
            self.wake()

    async def start_children(self, calls: starting.Calls) -> list[starting.Started | str | Exception]:
        """Start the children of one reply. A fair share begins here at once, the others go through the queue."""
        count = self._reserve(len(calls.asked))
        lock = clock.now() + timedelta(seconds=self._lease_seconds)
        begun: list[Ready] = []
        try:
            async with self._taking_up():
                own = starting.Own(count, self.name, lock)
                outcomes = await self.database.call(starting.start_children, calls, own)
                children = [outcome for outcome in outcomes if isinstance(outcome, starting.Started)]
                begun = [child.ready for child in children if child.ready is not None]
                for ready in begun:
                    self._execute(ready, lock)
        finally:
            for _unused in range(count - len(begun)):
                self.give_slot_back()
        if len(begun) < len(children):
            self._others_until = asyncio.get_running_loop().time() + _FOR_OTHERS_SECONDS
            self.wake()
        return outcomes

    def _reserve(self, wanted: int) -> int:
        """Take slots for up to so many children and say how many; `_execute` finds them taken."""
        free = 0 if self._draining else self.slots.free - (_MOST_PER_CLAIM if self._drawing else 0)
        count = queue.fair_share(wanted, workers=self._workers, free=free, most=_MOST_PER_CLAIM)
        for _child in range(count):
            self.slots.take()
        return count

    @contextlib.asynccontextmanager
    async def _taking_up(self) -> AsyncIterator[None]:
        """Around a claim. A cancel that rings meanwhile may be for a run that stands in no list yet."""
        self._taking += 1
        try:
            yield
        finally:
            self._taking -= 1
        if self._cancel_rang and not self._taking:
            self._cancel_rang = False
            await self._look_for_cancels()

    def give_up(self, run_id: UUID, execution: asyncio.Task[Any]) -> None:
        """End an execution without a word: whoever takes the run's lease next goes on from the transcript."""
        if self._tasks.get(run_id) is execution:
            self._leases.pop(self._queue_ids[run_id], None)
        execution.cancel()

    # --- the loop -----------------------------------------------------------------------------------------------
    async def serve(self, *, stop_asked: Callable[[], bool], tick: Callable[[], None] = lambda: None) -> None:
        """Work until `stop_asked`, then drain. `tick` is called once a turn: twice a second when all is well."""
        self._bell.start()
        try:
            await self._serve(stop_asked, tick)
        finally:
            await self._leave()

    async def _leave(self) -> None:
        # Whatever ended the loop: what is still held belongs to others now, it was not "cancelled".
        self._leases.clear()
        tasks = [*self._tasks.values(), *self._plain.values(), *self._graphs.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._bell.stop()
        await self._webhooks.close()
        await self._forget_heartbeat()
        await self.database.close()

    async def _serve(self, stop_asked: Callable[[], bool], tick: Callable[[], None]) -> None:
        while True:
            tick()
            if not self._draining and stop_asked():
                self._draining = True
                asyncio.get_running_loop().call_later(self._grace_seconds, self._hand_over_all)
            if self._draining and not self._tasks and not self._plain:
                return
            self._wake.clear()
            try:
                # Leases first: after a stall they may have lapsed, and this worker would draw its own runs again.
                await self._keep()
                drew = 0 if self._draining else await self._draw()
            except NO_DATABASE as fault:
                logger.warning("%s: no database (%s); trying again", self.name, fault)
                drew = 0
            if drew:
                await asyncio.sleep(_BETWEEN_DRAWS_SECONDS)
                continue
            await self._until_woken()

    async def run_until_idle(self) -> None:
        """Execute what is queued and everything that follows from it, then return."""
        self._bell.start()
        try:
            while await self._draw() or self._tasks:
                await self._keep()
                if self._tasks:
                    await asyncio.wait(self._tasks.values(), timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._leave()

    async def _until_woken(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):  # wait_for would lose a cancellation that comes with the wake
                await self._wake.wait()

    async def _draw(self) -> int:
        """Claim a share of what waits and start executing it. Returns how much was claimed."""
        if self.slots.free <= 0:
            return 0
        if self._tasks:
            polite = min(_SPREAD_MOST_SECONDS, len(self._tasks) * _SPREAD_SECONDS_PER_RUN)
            await asyncio.sleep(max(polite, self._others_until - asyncio.get_running_loop().time()))
        async with self._taking_up():
            self._drawing = True
            try:
                drawn, runs = await self.database.call(self._claim)
            finally:
                self._drawing = False
            if drawn.lock is not None:
                self._take_up(drawn, runs, drawn.lock)
        return len(drawn.runs) + len(drawn.tasks)

    def _take_up(self, drawn: claims.Claims, runs: Sequence[Ready], lock: datetime) -> None:
        for ready in runs:
            self.slots.take()
            self._execute(ready, lock)
        if self._plain_task is None:
            return
        for queue_id, plain in drawn.tasks:
            self._leases[queue_id] = lock
            task = self._plain[queue_id] = asyncio.create_task(self._plain_task(queue_id, plain))
            task.add_done_callback(partial(self._plain_done, queue_id))

    def _execute(self, ready: Ready, lock: datetime) -> None:
        """Begin with a run whose slot is taken."""
        claimed = ready.claimed
        run_id = claimed.run.pk
        # Its lease had lapsed and nobody else took it: the execution before this one has lost its fence.
        self._cancel_execution(run_id)
        self._leases[claimed.queue_id] = lock
        self._queue_ids[run_id] = claimed.queue_id
        task = asyncio.create_task(execution_of(self, ready).run(), name=str(run_id))
        self._tasks[run_id] = task
        task.add_done_callback(lambda done: self._done(run_id, done))

    def _claim(self) -> tuple[claims.Claims, list[Ready]]:
        drawn = claims.claim(
            free=self.slots.free,
            most=_MOST_PER_CLAIM,
            workers=self._workers,
            worker=self.name,
            lease_seconds=self._lease_seconds,
            max_attempts=self._max_attempts,
            own=lambda: frozenset(self._leases),
        )
        return drawn, [starting.ready(claimed) for claimed in drawn.runs]

    def _done(self, run_id: UUID, task: asyncio.Task[None]) -> None:
        if self._tasks.get(run_id) is task:
            del self._tasks[run_id]
            self._stops.pop(run_id, None)
            self._leases.pop(self._queue_ids.pop(run_id), None)
        self.give_slot_back()
        if not task.cancelled() and (fault := task.exception()) is not None:
            logger.error("run %s failed outside its own guard", run_id, exc_info=fault)
        if self._draining:
            self.wake()

    def _plain_done(self, queue_id: int, _task: asyncio.Task[None]) -> None:
        self._plain.pop(queue_id, None)
        self._leases.pop(queue_id, None)
        self.wake()

    # --- leases, cancels, heartbeat -----------------------------------------------------------------------------
    async def _keep(self) -> None:
        now = time.monotonic()
        if now - self._renewed_at >= self._lease_seconds / 3:
            self._renewed_at = now
            await self._renew()
            await self._look_for_cancels()  # a ring that got lost costs a third of a lease
            await self.children.look()
            self._workers = await self.database.call(
                heartbeat.beat,
                self.name,
                self.slots.count,
                len(self._tasks),
                self.waiting,
                2 * self._lease_seconds,
            )
            plans.share_models(self._workers)
            self._graphs.look()
        if now - self._webhooks_at >= _WEBHOOKS_SECONDS:
            self._webhooks_at = now
            await self._webhooks.look()
        if now - self._swept_at >= _SWEEP_SECONDS:
            self._swept_at = now
            await self.database.call(sweep.sweep)

    async def _renew(self) -> None:
        before = dict(self._leases)
        if not before:
            return
        kept, lock = await self.database.call(claims.renew, before, self._lease_seconds)
        for queue_id in before:
            if queue_id not in self._leases:
                continue  # ended meanwhile
            if queue_id in kept:
                self._leases[queue_id] = lock
            else:
                del self._leases[queue_id]
                self._cancel_execution(next((r for r, q in self._queue_ids.items() if q == queue_id), None))

    async def _look_for_cancels(self) -> None:
        if not self._tasks:
            return
        for run_id, status, by in await self.database.call(claims.cancel_requests):
            if run_id in self._tasks and run_id not in self._stops:
                self._stops[run_id] = Stop(status=status, by=by)
                self._cancel_execution(run_id)
        rung, self._rung = [run_id for run_id in self._rung if run_id in self._tasks], set()
        for run_id in await self.database.call(claims.no_longer_running, rung) if rung else ():
            # Somebody ended it at once: it is fenced already and may write no end.
            if (task := self._tasks.get(run_id)) is not None:
                self.give_up(run_id, task)

    def _hand_over_all(self) -> None:
        for task in self._plain.values():
            task.cancel()  # its row is claimed again once the lease is over
        for run_id in list(self._tasks):
            if run_id not in self._stops:
                self._stops[run_id] = Stop(hand_over=True)
                self._cancel_execution(run_id)

    def _cancel_execution(self, run_id: UUID | None) -> None:
        if run_id is not None and (task := self._tasks.get(run_id)) is not None:
            task.cancel()

    def _ring(self, ring: Ring) -> None:
        """A ring only ever triggers reads: on SQLite a write in answer would ring everybody again."""
        if ring.queue:
            self.wake()
        self.children.ring(ring)
        unknown = ring.threads is None
        if self._taking and (unknown or ring.cancels):
            self._cancel_rang = True
        if self._tasks and (unknown or not ring.cancels.isdisjoint(self._tasks)) and not self._looking:
            self._looking = True
            self._rung.update(ring.cancels & set(self._tasks))
            asyncio.get_running_loop().create_task(self._look_once())

    async def _look_once(self) -> None:
        self._looking = False
        try:
            await self._look_for_cancels()
        except NO_DATABASE as fault:
            logger.warning("%s: no database (%s)", self.name, fault)

    async def _forget_heartbeat(self) -> None:
        try:
            await self.database.call(heartbeat.forget, self.name)
        except NO_DATABASE:
            logger.warning("%s: no database at the end", self.name)
