"""The engine's Delegate port over our own runs: a child is a run like any other, executed by whoever is free."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.ports import ChildCall, ChildResult
from engine.stop import SubagentStatus
from runs.errors import Fenced
from runs.group_commit import NO_DATABASE
from runs.lifecycle import Held, StartChild, waiting
from runs.statuses import WaitingFor
from runs.worker import plans
from runs.worker.children import result_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runs.models import Run
    from runs.worker.host import RunHost

logger = logging.getLogger(__name__)


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
        self._awaited = 0  # children this run waits for now
        self._has_slot = True
        self._turn = asyncio.Lock()  # one change of `_has_slot` at a time

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

    async def tree_tokens(self) -> int:
        return await self._host.database.call(plans.tree_tokens, self._run.root_id)

    async def _run_child(self, call: ChildCall) -> ChildResult:
        database = self._host.database
        dispatch = await database.call(plans.dispatch_for, self._run, self._plan, call)
        child: Run | None
        started_now = False
        if isinstance(dispatch, str):
            # A child that was started before stays this call's child, although it would not be started any more.
            child = await database.call(plans.child_of, self._run, call.tool_call_id)
            if child is None:
                return ChildResult(status=SubagentStatus.FAILED, text=dispatch)
        else:
            child, started_now = await self._start(call, dispatch)
        async with self._without_slot():
            await self._host.children.ended(child.pk, child.thread_id, look=not started_now)
        return await database.call(result_of, child.pk)

    async def _start(self, call: ChildCall, dispatch: plans.Dispatch) -> tuple[Run, bool]:
        """The child of this call, and whether it was started just now."""
        verb = StartChild(
            parent=self._held,
            tool_call_id=call.tool_call_id,
            agent=dispatch.agent,
            title=dispatch.title,
            prompt=call.prompt,
            definition=dispatch.definition,
            model=dispatch.model,
            card=dispatch.card,
        )
        children = self._host.children
        children.expect(verb.run_id, verb.thread_id)
        started_now = False
        try:
            child, started_now = await self._host.database.write(verb)
        finally:
            if not started_now:
                children.forget(verb.run_id, verb.thread_id)
        self._host.wake()
        return child, started_now

    @asynccontextmanager
    async def _without_slot(self) -> AsyncIterator[None]:
        """Around a wait: the first of this run's waits gives the slot back, the last one takes it again.

        However this is left, the run counts as having its slot afterwards, since its end gives that back.
        """
        self._awaited += 1
        try:
            async with self._turn:
                if self._has_slot:
                    self._host.slots.give_back()
                    self._note_slot(has_slot=False)
                    self._note_waiting(WaitingFor.CHILDREN)
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
