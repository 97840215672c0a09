"""The engine's Delegate port over our own runs: a child is a run like any other, executed by whoever is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.ports import ChildCall, ChildResult
from engine.stop import SubagentStatus
from runs.lifecycle import Held, StartChild, waiting
from runs.statuses import WaitingFor
from runs.worker import plans
from runs.worker.children import result_of

if TYPE_CHECKING:
    from runs.models import Run
    from runs.worker.host import RunHost


class LocalDelegate:
    """Starts and awaits the children of one run. While it waits for any, the run holds no slot."""

    def __init__(self, host: RunHost, held: Held, run: Run, plan: plans.Plan) -> None:
        self._host = host
        self._held = held
        self._run = run
        self._plan = plan
        self._awaited = 0

    async def run_child(self, call: ChildCall) -> ChildResult:
        database = self._host.database
        dispatch = await database.call(plans.dispatch_for, self._run, self._plan, call)
        if isinstance(dispatch, str):
            return ChildResult(status=SubagentStatus.FAILED, text=dispatch)
        child, _started_now = await database.write(
            StartChild(
                parent=self._held,
                tool_call_id=call.tool_call_id,
                agent=dispatch.agent,
                title=dispatch.title,
                prompt=call.prompt,
                definition=dispatch.definition,
                model=dispatch.model,
                card=dispatch.card,
            )
        )
        self._host.wake()
        await self._begin_waiting()
        try:
            await self._host.children.ended(child.pk, child.thread_id)
        except BaseException:
            self._abandon_waiting()
            raise
        await self._end_waiting()
        return await database.call(result_of, child.pk)

    async def tree_tokens(self) -> int:
        return await self._host.database.call(plans.tree_tokens, self._run.root_id)

    async def _begin_waiting(self) -> None:
        self._awaited += 1
        if self._awaited == 1:
            self._host.waiting += 1
            self._host.slots.give_back()
            await self._host.database.write(waiting(self._held, WaitingFor.CHILDREN))

    def _abandon_waiting(self) -> None:
        self._awaited -= 1
        if not self._awaited:
            self._host.waiting -= 1
            self._host.slots.reclaim()

    async def _end_waiting(self) -> None:
        self._awaited -= 1
        if self._awaited:
            return
        self._host.waiting -= 1
        if self._host.slots.full:
            await self._host.database.write(waiting(self._held, WaitingFor.SLOT))
        await self._host.slots.take_again()
        await self._host.database.write(waiting(self._held, WaitingFor.NOTHING))
