"""The engine's Delegate port over our own runs: a child is a run like any other, executed by whoever is free."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from engine.ports import ChildCall, ChildResult
from engine.stop import SubagentStatus
from runs.errors import Fenced
from runs.group_commit import NO_DATABASE
from runs.lifecycle import Held, Progress, waiting
from runs.statuses import WaitingFor
from runs.worker import plans, starting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from uuid import UUID

    from engine.ports import Pause
    from runs.models import Run
    from runs.worker.host import RunHost

logger = logging.getLogger(__name__)
_GATHER_SECONDS = 0.02  # a call that was announced may be refused before it comes here


class LocalDelegate:
    """Starts and awaits the children of one run. While it waits for any, the run holds no slot."""

    def __init__(self, host: RunHost, held: Held, run: Run, plan: plans.Plan) -> None:
        """To be made inside the task that executes the run."""
        execution = asyncio.current_task()
        assert execution is not None
        self._execution = execution
        self._host = host
        self._held = held
        self._run = run
        self._plan = plan
        self.started: dict[str, tuple[UUID, UUID]] = {}  # (run, thread) of the children, by the call that wanted them
        self._awaited = 0  # children this run waits for now
        self._has_slot = True
        self._asked: list[tuple[starting.Asked, asyncio.Future[starting.Started | str]]] = []
        self._announced = 0  # calls of the last reply that have not come yet
        self._reply: Progress | None = None
        self._written: asyncio.Future[Any] | None = None
        self._all_came = asyncio.Event()
        self._starting: asyncio.Task[None] | None = None  # a task that nobody holds may vanish
        self._turn = asyncio.Lock()  # one change of `_has_slot` at a time

    def announce(self, calls: int, reply: Progress | None = None) -> None:
        """So many calls of one reply are about to come: they are started together.

        In one transaction with the `reply`, when that is not being stored already.
        """
        self._announced, self._reply = calls, reply

    def take_reply(self) -> Progress | None:
        """The announced reply, when it has not been stored; whoever takes it stores it before anything else."""
        reply, self._reply = self._reply, None
        return reply

    def start_after(self, written: asyncio.Future[Any]) -> None:
        """The reply is being stored without its children: they come after it."""
        self._written = written

    async def run_child(self, call: ChildCall) -> ChildResult:
        try:
            return await self._run_child(call)
        except (Fenced, *NO_DATABASE) as fault:
            # Not an outcome of the delegation, so the model must not be told one: whoever holds the run next finds
            # the child by this call.
            logger.info("run %s: given up quietly here: %s", self._run.pk, fault)
            self._host.give_up(self._run.pk, self._execution)
            await asyncio.get_running_loop().create_future()  # the cancellation that follows ends this wait
            raise

    def pause(self, pause: Pause) -> AbstractAsyncContextManager[None]:
        """Around a wait before a model call: somebody else may have the slot meanwhile."""
        return self._without_slot(WaitingFor(pause.value))

    async def tree_tokens(self) -> int:
        return await self._host.database.call(plans.tree_tokens, self._run.root_id)

    async def _run_child(self, call: ChildCall) -> ChildResult:
        started = await self._started(call)
        if isinstance(started, str):
            return ChildResult(status=SubagentStatus.FAILED, text=started)
        async with self._without_slot(WaitingFor.CHILDREN):
            return await self._host.children.ended(started.run_id, started.thread_id, look=not started.now)

    async def _started(self, call: ChildCall) -> starting.Started | str:
        """The child of this call, or the sentence that refuses it. Calls that come together are started together."""
        asked = starting.Asked(call)
        answer: asyncio.Future[starting.Started | str] = asyncio.get_running_loop().create_future()
        self._asked.append((asked, answer))
        if len(self._asked) >= self._announced:
            self._all_came.set()
        self._host.children.expect(asked.run_id, asked.thread_id)
        if len(self._asked) == 1:
            self._starting = asyncio.create_task(self._start_asked())
        try:
            started = await answer
        except BaseException:
            self._host.children.forget(asked.run_id, asked.thread_id)
            raise
        if isinstance(started, str) or not started.now:
            self._host.children.forget(asked.run_id, asked.thread_id)
        return started

    async def _start_asked(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_SECONDS):
                await self._all_came.wait()
        if self._written is not None:
            await asyncio.wait((self._written,))
        batch, self._asked = self._asked, []
        self._announced = max(0, self._announced - len(batch))
        self._all_came.clear()
        calls = starting.Calls(
            self._held, self._run, self._plan, [asked for asked, _answer in batch], self.take_reply()
        )
        try:
            outcomes = await self._host.start_children(calls)
        except Exception as fault:  # noqa: BLE001 - handed to whoever asked
            self._reply = calls.reply  # nothing of the transaction is there, or the run is given up
            outcomes = [fault] * len(batch)
        for (asked, answer), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, starting.Started):
                self.started[asked.call.tool_call_id] = (outcome.run_id, outcome.thread_id)
            if answer.done():
                continue
            if isinstance(outcome, Exception):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

    @asynccontextmanager
    async def _without_slot(self, waiting_for: WaitingFor) -> AsyncIterator[None]:
        """Around a wait: the first of this run's waits gives the slot back, the last one takes it again.

        However this is left, the run counts as having its slot afterwards, since its end gives that back.
        """
        self._awaited += 1
        try:
            async with self._turn:
                if self._has_slot:
                    self._host.give_slot_back()
                    self._note_slot(has_slot=False)
                    self._note_waiting(waiting_for)
            yield
        except BaseException:
            self._awaited -= 1
            # Whoever is at its turn now takes the slot, however that ends.
            if not self._awaited and not self._has_slot and not self._turn.locked():
                self._host.slots.reclaim()
                self._note_slot(has_slot=True)
            raise
        self._awaited -= 1
        async with self._turn:
            if not self._awaited and not self._has_slot:
                await self._take_slot_again()

    async def _take_slot_again(self) -> None:
        slots, asked = self._host.slots, False
        try:
            if slots.full:
                self._note_waiting(WaitingFor.SLOT)
            asked = True
            await slots.take_again()
        finally:
            if not asked:
                slots.reclaim()
            self._note_slot(has_slot=True)
        self._note_waiting(WaitingFor.NOTHING)

    def _note_waiting(self, waiting_for: WaitingFor) -> None:
        """Not awaited: it is for people to see, and whatever is wrong with the database shows at the next step."""
        noted = self._host.database.write(waiting(self._held, waiting_for))
        noted.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _note_slot(self, *, has_slot: bool) -> None:
        self._has_slot = has_slot
        self._host.waiting += -1 if has_slot else 1
