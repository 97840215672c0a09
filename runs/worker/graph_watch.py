"""Each worker loads the graphs of langgraph.json when it begins and when they change, and reports what came of it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from runs.group_commit import NO_DATABASE
from runs.worker import graph_plans
from subagents import graphs, registry
from subagents.errors import ConfigRefused

if TYPE_CHECKING:
    from runs.group_commit import GroupCommit
    from subagents.graphs import RegisteredGraphs

logger = logging.getLogger(__name__)


class GraphWatch:
    """To be asked to `look` now and then. Loading happens in a thread: importing somebody's code may take seconds."""

    def __init__(self, database: GroupCommit, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._known = ""
        self.tasks: set[asyncio.Task[None]] = set()  # at most one

    def look(self) -> None:
        if not self.tasks:
            task = asyncio.create_task(self._look())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _look(self) -> None:
        try:
            registered = await self._database.call(_registered)
            signature = registered.files_signature
            if signature == self._known:
                return
            outcomes = await asyncio.to_thread(graph_plans.load_all, registered)
            await self._database.call(self._report, outcomes)
            self._known = signature
        except (*NO_DATABASE, ConfigRefused) as fault:
            logger.info("graphs are looked for again later: %s", fault)

    def _report(self, outcomes: list[dict[str, str]]) -> None:
        for outcome in outcomes:
            graphs.report(**outcome, worker=self._worker)
        registry.forget()


def _registered() -> RegisteredGraphs:
    return registry.current().graphs
