"""The endpoints of runs: made, waited for, streamed, found, stopped and deleted. Thin, as those of the other wire."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response

from access.keys import Scope
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.ap.requests import named_here, wanted_run
from runs.agent_protocol.ap.shapes import run_of, state_of
from runs.agent_protocol.bodies import an_id, json_body, path_id, some_metadata
from runs.agent_protocol.cancelling import stopping
from runs.agent_protocol.containing import containing
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.fields import a_page, a_text
from runs.agent_protocol.following import joined, streamed
from runs.agent_protocol.position import Position
from runs.agent_protocol.reading import find_run_anywhere
from runs.agent_protocol.shapes import json_response
from runs.agent_protocol.sse import Frames, follow_run
from runs.agent_protocol.starting import alone, start_on
from runs.agent_protocol.state import state_upto
from runs.agent_protocol.stateless import place_alone
from runs.agent_protocol.views import delete_found, resumed, said_yes
from runs.errors import BadInput, RunNotFound
from runs.models import Run
from runs.statuses import ENDED, RunStatus
from runs.transcript import from_json

if TYPE_CHECKING:
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller
    from runs.agent_protocol.run_request import RunRequest

_STATUSES = {
    "pending": {RunStatus.PENDING, RunStatus.RUNNING},
    "success": {RunStatus.SUCCESS},
    "error": {RunStatus.ERROR},
    "timeout": {RunStatus.TIMEOUT},
    "interrupted": {RunStatus.INTERRUPTED, RunStatus.CANCELLED},
}


async def create_run(request: Request) -> Response:
    run, _wanted = await _created(request)
    return json_response(run_of(run), headers={"Content-Location": place_alone(run)})


async def create_and_wait(request: Request) -> Response:
    run, wanted = await _created(request)
    return joined(run, cancel_on_disconnect=wanted.cancel_on_disconnect, place=place_alone(run), answer=_outcome)


async def create_and_stream(request: Request) -> Response:
    run, wanted = await _created(request)
    return await streamed(run, cancel_on_disconnect=wanted.cancel_on_disconnect, place=place_alone(run))


async def get_run(request: Request) -> Response:
    return json_response(run_of(await _found(request, Scope.READ)))


async def wait_run(request: Request) -> Response:
    run = await _found(request, Scope.READ)
    return joined(run, place=place_alone(run), answer=_outcome)


async def stream_run(request: Request) -> Response:
    scope = Scope.RUN if said_yes(request, "cancel_on_disconnect") else Scope.READ
    run = await _found(request, scope)
    return await resumed(request, run, place=place_alone(run))


async def delete_run(request: Request) -> Response:
    run_id = path_id(request, "run_id")
    await asked(
        request,
        Scope.RUN,
        lambda caller: delete_found(find_run_anywhere(run_id, caller.owner_id), caller.username),
    )
    return Response(status_code=204)


async def cancel_run(request: Request) -> Response:
    run_id, stop = path_id(request, "run_id"), stopping(request)

    def cancelled(caller: Caller) -> Run:
        run = find_run_anywhere(run_id, caller.owner_id)
        if not stop(run.pk, caller.username):
            raise Refused(404, "already_ended", f"run {run.pk} has already ended")
        return run

    run = await asked(request, Scope.RUN, cancelled)
    if said_yes(request, "wait"):
        await _end_of(run)
    return Response(status_code=204)


async def search_runs(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    body = await json_body(request)
    page, metadata, status = a_page(body), some_metadata(body), body.get("status")
    agent = a_text(body, "agent_id", most=200)
    thread_id = None if body.get("thread_id") is None else an_id(body["thread_id"], "thread_id")
    if status is not None and (not isinstance(status, str) or status not in _STATUSES):
        raise BadInput("status", f"expected one of {', '.join(_STATUSES)}")

    def found() -> list[dict[str, Any]]:
        runs = containing(Run.objects.filter(thread__owner_id=caller.owner_id, depth=0), "metadata", metadata)
        for name, value in (("thread_id", thread_id), ("agent", agent)):
            runs = runs.filter(**{name: value}) if value is not None else runs
        runs = runs.filter(status__in=_STATUSES[status]) if status is not None else runs
        return [run_of(run) for run in runs.defer("definition", "input").order_by("-created_at", "-pk")[page.part]]

    return json_response(await database().call(found))


async def _found(request: Request, scope: Scope) -> Run:
    run_id = path_id(request, "run_id")
    return await asked(request, scope, lambda caller: find_run_anywhere(run_id, caller.owner_id))


async def _created(request: Request) -> tuple[Run, RunRequest]:
    """A run on the thread that the body names, or on one of its own."""
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    wanted, messages_path = wanted_run(body)
    with named_here(messages_path):
        if body.get("thread_id") is not None:
            return await start_on(caller, an_id(body["thread_id"], "thread_id"), wanted), wanted
        run: Any = await database().write(await alone(caller, wanted))
        return run, wanted


def _outcome(run_id: UUID, end_seq: int | None) -> bytes:
    """{"run", "values", "messages"} of a run that has ended."""
    run = Run.objects.filter(pk=run_id).defer("definition", "input").first()
    if run is None:
        raise RunNotFound(run_id)
    state = from_json(state_upto(run.thread_id, end_seq).json())
    return orjson.dumps({"run": run_of(run), **state_of(state)}, default=str)


async def _end_of(run: Run) -> None:
    if run.status in ENDED:
        return
    frames = Frames(run.pk, (), Position(run.base_seq))
    async with aclosing(follow_run(run.thread_id, run.base_seq, frames)) as pieces:
        async for _piece in pieces:
            pass
