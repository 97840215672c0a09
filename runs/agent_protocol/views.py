"""The endpoints. Thin: read the request, call a verb, shape the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from access.keys import Caller, Scope
from runs.agent_protocol.access import asked, callers_of, database, key_in
from runs.agent_protocol.bodies import path_id
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.following import joined, place_of, streamed
from runs.agent_protocol.reading import find_run, find_runs, list_runs
from runs.agent_protocol.run_request import GRAPH_MODES, stream_modes
from runs.agent_protocol.shapes import json_response, run_object
from runs.agent_protocol.starting import created
from runs.errors import BadInput, RunsError
from runs.lifecycle import remove_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from runs.graphs.acting import Acting
    from runs.models import Run

_YES = frozenset({"1", "true"})
_MOST_RUNS_PER_PAGE = 1000


async def ok(_request: Request) -> Response:
    return json_response(b'{"ok":true}')


async def create_run(request: Request) -> Response:
    run, _wanted = await created(request)
    return json_response(run_object(run), headers={"Content-Location": place_of(run)})


async def wait_run(request: Request) -> Response:
    run, wanted = await created(request)
    return joined(run, cancel_on_disconnect=wanted.cancel_on_disconnect)


async def stream_run(request: Request) -> Response:
    run, wanted = await created(request)
    return await streamed(run, cancel_on_disconnect=wanted.cancel_on_disconnect)


async def get_runs(request: Request) -> Response:
    def found(caller: Caller) -> list[Run]:
        limit, offset = _count(request, "limit", 10), _count(request, "offset", 0)
        status = request.query_params.get("status")
        thread_id = path_id(request, "thread_id")
        return list_runs(thread_id, caller.owner_id, status, min(limit, _MOST_RUNS_PER_PAGE), offset)

    fields = request.query_params.getlist("select")
    return json_response([_selected(run_object(run), fields) for run in await asked(request, Scope.READ, found)])


async def get_run(request: Request) -> Response:
    return json_response(run_object(await _found(request, Scope.READ)))


async def join_run(request: Request) -> Response:
    cancel = said_yes(request, "cancel_on_disconnect")
    run = await _found(request, Scope.RUN if cancel else Scope.READ)
    return joined(run, cancel_on_disconnect=cancel)


async def join_stream(request: Request) -> Response:
    # Reading needs `read`; a connection whose end stops the run needs what stopping needs.
    scope = Scope.RUN if said_yes(request, "cancel_on_disconnect") else Scope.READ
    return await resumed(request, await _found(request, scope))


async def resumed(request: Request, run: Run, *, place: str = "") -> Response:
    """A run's stream from where the request says that its reader stands."""
    cancel = said_yes(request, "cancel_on_disconnect")
    modes = stream_modes(request.query_params.getlist("stream_mode"))
    stored = run.options.get("stream_mode", ())
    for mode in modes:
        if mode in GRAPH_MODES and mode not in stored:
            raise BadInput("stream_mode", f"this run was not started to stream {mode}")
    last = request.headers.get("last-event-id", "")
    return await streamed(run, modes=modes, last_event_id=last, cancel_on_disconnect=cancel, place=place)


async def delete_run(request: Request) -> Response:
    await asked(request, Scope.RUN, lambda caller: delete_found(run_in(request, caller), caller.username))
    return Response(status_code=204)


def delete_found(run: Run, by: str) -> None:
    """Delete a lead's run. Raises Refused for a subagent's."""
    if run.depth:
        raise Refused(409, "part_of_another", "a subagent's run is deleted with the run that it belongs to")
    remove_run(run.pk, by=by)


# --- shared ---------------------------------------------------------------------------------------------------------
async def _found(request: Request, scope: Scope) -> Run:
    return await database().ask(_found_together, (key_in(request), scope, request))


def _found_together(requests: Sequence[tuple[str | Acting, Scope, Request]]) -> list[Any]:
    """The runs of requests that came together, by two statements for all of them; or what refuses each."""
    outcomes: list[Any] = [*callers_of([(key, scope) for key, scope, _request in requests])]
    wanted = {}
    for place, (_key, _scope, request) in enumerate(requests):
        if isinstance(outcomes[place], Caller):
            try:
                ids = path_id(request, "thread_id"), path_id(request, "run_id")
                wanted[place] = (*ids, outcomes[place].owner_id)
            except (Refused, RunsError) as fault:
                outcomes[place] = fault
    for place, run in zip(wanted, find_runs(list(wanted.values())), strict=True):
        outcomes[place] = run
    return outcomes


def run_in(request: Request, caller: Caller) -> Run:
    return find_run(path_id(request, "thread_id"), path_id(request, "run_id"), caller.owner_id)


def _selected(run: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    for field in fields:
        if field not in run:
            raise BadInput("select", f"expected some of {', '.join(run)}")
    return {field: run[field] for field in fields} if fields else run


def _count(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadInput(name, "expected a whole number")
    return int(text)


def said_yes(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in _YES
