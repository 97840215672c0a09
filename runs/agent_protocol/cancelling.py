"""The endpoints that stop runs: one, or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from access.keys import Scope
from runs import services
from runs.agent_protocol.access import asked
from runs.agent_protocol.bodies import an_id, json_body
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.following import joined
from runs.agent_protocol.shapes import json_response
from runs.agent_protocol.views import run_in, said_yes
from runs.errors import BadInput, RunNotFound
from runs.lifecycle import roll_back_run
from runs.models import Run
from runs.statuses import ACTIVE, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller

_STATUSES = {"pending": {RunStatus.PENDING}, "running": {RunStatus.RUNNING}, "all": ACTIVE}
_MOST_AT_ONCE = 1000


async def cancel_run(request: Request) -> Response:
    stop = stopping(request)

    def cancelled(caller: Caller) -> Run:
        run = run_in(request, caller)
        if not stop(run.pk, caller.username):
            raise Refused(404, "already_ended", f"run {run.pk} has already ended")
        return run

    run = await asked(request, Scope.RUN, cancelled)
    if not said_yes(request, "wait"):
        return Response(status_code=202)
    return json_response(b"{}") if stop is _rolled_back else joined(run)


async def cancel_many(request: Request) -> Response:
    """Stop the named runs of a thread, or all of the caller's in a status. 404 when none of them is active."""
    body, stop = await json_body(request), stopping(request)

    def cancelled(caller: Caller) -> None:
        run_ids = _meant(body, caller.owner_id)
        if not [pk for pk in run_ids if stop(pk, caller.username)]:
            raise Refused(404, "not_found", "no active run matches")

    await asked(request, Scope.RUN, cancelled)
    return Response(status_code=204)


def _interrupted(run_id: UUID, by: str) -> bool:
    try:
        return services.cancel_run(run_id=run_id, by=by)
    except RunNotFound:
        return False  # gone meanwhile, among many


def _rolled_back(run_id: UUID, by: str) -> bool:
    return roll_back_run(run_id, by=by)


def stopping(request: Request) -> Callable[[UUID, str], bool]:
    """How the request wants runs stopped: a function of (run, by whom) that says whether it was active."""
    actions = {"interrupt": _interrupted, "rollback": _rolled_back}
    wanted = request.query_params.get("action", "interrupt")
    if wanted not in actions:
        raise BadInput("action", f"expected one of {', '.join(actions)}")
    return actions[wanted]


def _meant(body: Mapping[str, Any], owner_id: int) -> list[UUID]:
    """The active leads' runs that a body names, the newest first: none has its turn before its end."""
    status, run_ids, thread_id = body.get("status"), body.get("run_ids"), body.get("thread_id")
    runs = Run.objects.active().filter(thread__owner_id=owner_id, depth=0).order_by("-created_at", "-pk")
    if status is not None:
        if run_ids is not None or thread_id is not None:
            raise BadInput("status", "give either status, or thread_id and run_ids")
        if not isinstance(status, str) or status not in _STATUSES:
            raise BadInput("status", f"expected one of {', '.join(_STATUSES)}")
        runs = runs.filter(status__in=_STATUSES[status])
    else:
        if thread_id is None:
            raise BadInput("thread_id", "give thread_id and run_ids, or status")
        if not isinstance(run_ids, list) or not 0 < len(run_ids) <= _MOST_AT_ONCE:
            raise BadInput("run_ids", f"expected a list of 1 to {_MOST_AT_ONCE:,} ids")
        wanted = [an_id(one, f"run_ids[{place}]") for place, one in enumerate(run_ids)]
        runs = runs.filter(thread_id=an_id(thread_id, "thread_id"), pk__in=wanted)
    return list(runs.values_list("pk", flat=True)[:_MOST_AT_ONCE])
