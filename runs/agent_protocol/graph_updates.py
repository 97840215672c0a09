"""Changing the state of a graph's thread by hand: a worker does it, for only the graph knows how its state changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from runs import services
from runs.agent_protocol.access import database
from runs.agent_protocol.bodies import an_object
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.reading import check_owner
from runs.errors import BadInput
from runs.graphs import state
from runs.models import Run
from runs.services import MultitaskStrategy
from runs.statuses import ENDED, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from access.keys import Caller

_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.05


def graph_of(thread_id: UUID, owner_id: int) -> str:
    """The graph that works on a thread of this person; empty when none does. Raises ThreadNotFound."""
    check_owner(thread_id, owner_id)
    if not state.is_graphs(thread_id):
        return ""
    runs = Run.objects.filter(thread_id=thread_id, definition__source="graph").order_by("-created_at", "-pk")
    return runs.values_list("agent", flat=True).first() or ""


async def graph_updated(caller: Caller, thread_id: UUID, body: Mapping[str, Any]) -> dict[str, Any]:
    """Write the state as if a node had. Raises ThreadBusy (409) while a run is active, Refused when the graph fails."""
    node = body.get("as_node")
    if node is not None and not isinstance(node, str):
        raise BadInput("as_node", "expected the name of a node")
    written = an_object(body, "checkpoint")
    update = {"values": body.get("values"), "as_node": node}
    asked = {"update": update, "checkpoint_id": written.get("checkpoint_id") or body.get("checkpoint_id")}
    name = await database().call(graph_of, thread_id, caller.owner_id)
    start = await database().call(_start, caller.owner_id, thread_id, name, asked)
    run = await _ended(await database().write(start))
    if run.status != RunStatus.SUCCESS:
        raise Refused(400, run.error_code or "invalid", run.error or "the state could not be changed")
    found = await database().call(state.state_of, thread_id)
    place = found["checkpoint"] if found else {}
    return {"checkpoint": place, "configurable": place, "checkpoint_id": place.get("checkpoint_id")}


def _start(owner_id: int, thread_id: UUID, agent: str, asked: Mapping[str, Any]) -> Any:
    return services.graph_start_verb(
        thread_id=thread_id,
        owner_id=owner_id,
        agent=agent,
        messages=[],
        graph=asked,
        multitask=MultitaskStrategy.REJECT,
    )


async def _ended(run: Run) -> Run:
    """The run once a worker has done it. Refused (503) when none does in time: it is taken back then."""
    deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
    while True:
        now = await database().call(_again, run.pk)
        if now.status in ENDED:
            return now
        if asyncio.get_running_loop().time() > deadline:
            await database().call(_cancel, run.pk)
            raise Refused(503, "no_worker", "no worker has changed the state in time; try again")
        await asyncio.sleep(_LOOK_SECONDS)


def _again(run_id: UUID) -> Run:
    return Run.objects.only("status", "error", "error_code").get(pk=run_id)


def _cancel(run_id: UUID) -> None:
    services.cancel_run(run_id=run_id, by="the state's writer")
