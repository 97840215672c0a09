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
from runs.agent_protocol.views import run_in, said_yes
from runs.errors import BadInput
from runs.models import Run
from runs.statuses import ACTIVE, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller

_STATUSES = {"pending": {RunStatus.PENDING}, "running": {RunStatus.RUNNING}, "all": ACTIVE}
_MOST_AT_ONCE = 1000


async def cancel_run(request: Request) -> Response:
    def cancelled(caller: Caller) -> Run:
        run = run_in(request, caller)
        _check_action(request)
        if not services.cancel_run(run_id=run.pk, by=caller.username):
            raise Refused(404, "already_ended", f"run {run.pk} has already ended")
        return run

    run = await asked(request, Scope.RUN, cancelled)
    return joined(run) if said_yes(request, "wait") else Response(status_code=202)


async def cancel_many(request: Request) -> Response:
    """Stop the named runs of a thread, or all of the caller's in a status. 404 when none of them is active."""
    body = await json_body(request)

    def cancelled(caller: Caller) -> None:
        _check_action(request)
        run_ids = _meant(body, caller.owner_id)
        if not [pk for pk in run_ids if services.cancel_run(run_id=pk, by=caller.username)]:
            raise Refused(404, "not_found", "no active run matches")

    await asked(request, Scope.RUN, cancelled)
    return Response(status_code=204)


def _check_action(request: Request) -> None:
    if request.query_params.get("action", "interrupt") != "interrupt":
        raise BadInput("action", "this server supports only interrupt")


def _meant(body: Mapping[str, Any], owner_id: int) -> list[UUID]:
    """The active leads' runs that a body names. Raises BadInput."""
    status, run_ids, thread_id = body.get("status"), body.get("run_ids"), body.get("thread_id")
    runs = Run.objects.active().filter(thread__owner_id=owner_id).order_by("created_at", "pk")
    if status is not None:
        if run_ids is not None or thread_id is not None:
            raise BadInput("status", "give either status, or thread_id and run_ids")
        if not isinstance(status, str) or status not in _STATUSES:
            raise BadInput("status", f"expected one of {', '.join(_STATUSES)}")
        runs = runs.filter(status__in=_STATUSES[status], depth=0)
    else:
        if thread_id is None:
            raise BadInput("thread_id", "give thread_id and run_ids, or status")
        if not isinstance(run_ids, list) or not 0 < len(run_ids) <= _MOST_AT_ONCE:
            raise BadInput("run_ids", f"expected a list of 1 to {_MOST_AT_ONCE:,} ids")
        wanted = [an_id(one, f"run_ids[{place}]") for place, one in enumerate(run_ids)]
        runs = runs.filter(thread_id=an_id(thread_id, "thread_id"), pk__in=wanted)
    return list(runs.values_list("pk", flat=True)[:_MOST_AT_ONCE])
