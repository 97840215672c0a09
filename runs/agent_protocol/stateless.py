"""Runs without a thread of the caller's: each gets one, which goes some time after its end unless it is to be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.keys import Scope
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.bodies import json_objects, path_id
from runs.agent_protocol.following import joined, streamed
from runs.agent_protocol.reading import find_run_anywhere
from runs.agent_protocol.run_request import run_request
from runs.agent_protocol.shapes import json_response, run_object
from runs.agent_protocol.starting import all_or_none, alone, created_alone
from runs.agent_protocol.views import resumed, said_yes
from runs.errors import BadInput

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from runs.agent_protocol.run_request import RunRequest
    from runs.models import Run

_MOST_IN_A_BATCH = 100


def place_alone(run: Run) -> str:
    """The path of a run that has no thread of the caller's, without our mount."""
    return f"/runs/{run.pk}"


async def create_run(request: Request) -> Response:
    run, _wanted = await created_alone(request)
    return json_response(run_object(run), headers={"Content-Location": place_alone(run)})


async def wait_run(request: Request) -> Response:
    run, wanted = await created_alone(request)
    return joined(run, cancel_on_disconnect=wanted.cancel_on_disconnect)


async def stream_run(request: Request) -> Response:
    run, wanted = await created_alone(request)
    return await streamed(run, cancel_on_disconnect=wanted.cancel_on_disconnect, place=place_alone(run))


async def create_batch(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    wanted = [_one(body, place) for place, body in enumerate(await json_objects(request, _MOST_IN_A_BATCH))]
    verbs = [await alone(caller, one) for one in wanted]
    return json_response([run_object(run) for run in await database().call(all_or_none, verbs)])


async def get_run(request: Request) -> Response:
    return json_response(run_object(await _found(request, Scope.READ)))


async def join_run(request: Request) -> Response:
    cancel = said_yes(request, "cancel_on_disconnect")
    return joined(await _found(request, Scope.RUN if cancel else Scope.READ), cancel_on_disconnect=cancel)


async def join_stream(request: Request) -> Response:
    scope = Scope.RUN if said_yes(request, "cancel_on_disconnect") else Scope.READ
    run = await _found(request, scope)
    return await resumed(request, run, place=place_alone(run))


async def _found(request: Request, scope: Scope) -> Run:
    run_id = path_id(request, "run_id")
    return await asked(request, scope, lambda caller: find_run_anywhere(run_id, caller.owner_id))


def _one(body: dict[str, object], place: int) -> RunRequest:
    try:
        return run_request(body)
    except BadInput as fault:
        raise BadInput(f"[{place}].{fault.field}", fault.message) from None
