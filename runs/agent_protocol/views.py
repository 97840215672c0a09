"""The endpoints. Thin: read the request, call a verb, shape the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError
from starlette.responses import Response

from access.keys import Scope
from runs import services
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.assistants import agent_of, needs_look_up
from runs.agent_protocol.bodies import a_choice, an_id, json_body, path_id, refuse_unsupported, some_metadata
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.following import joined, place_of, streamed
from runs.agent_protocol.reading import find_run, interrupts_of, list_runs, thread_answer, thread_exists
from runs.agent_protocol.run_request import run_request, stream_modes
from runs.agent_protocol.shapes import json_response, run_object, thread_object
from runs.errors import BadInput, RunsError, ThreadExists
from runs.lifecycle import OpenThread, commit
from runs.models import Run, new_id
from runs.services import LEAD_AGENT, MultitaskStrategy

if TYPE_CHECKING:
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller
    from runs.agent_protocol.run_request import RunRequest
    from runs.lifecycle import Start

_YES = frozenset({"1", "true"})
_MOST_RUNS_PER_PAGE = 1000


async def ok(_request: Request) -> Response:
    return json_response(b'{"ok":true}')


async def create_thread(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    refuse_unsupported(body, ("supersteps", "ttl"))
    wanted = an_id(body["thread_id"], "thread_id") if body.get("thread_id") is not None else None
    if_exists = a_choice(body, "if_exists", ("raise", "do_nothing"), "raise")
    verb = OpenThread(owner_id=caller.owner_id, thread_id=wanted or new_id(), metadata=some_metadata(body))
    try:
        thread = await database().write(verb)
    except IntegrityError:
        if if_exists == "raise" or wanted is None:
            raise ThreadExists(verb.thread_id) from None
        return json_response(await database().call(thread_answer, wanted, caller.owner_id))
    return json_response(thread_object(thread, None))


async def get_thread(request: Request) -> Response:
    def answer(caller: Caller) -> bytes:
        return thread_answer(path_id(request, "thread_id"), caller.owner_id)

    return json_response(await asked(request, Scope.READ, answer))


async def create_run(request: Request) -> Response:
    run, _wanted = await _created(request)
    return json_response(run_object(run), headers={"Content-Location": place_of(run)})


async def wait_run(request: Request) -> Response:
    run, wanted = await _created(request)
    return joined(run, cancel_on_disconnect=wanted.cancel_on_disconnect)


async def stream_run(request: Request) -> Response:
    run, wanted = await _created(request)
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
    return joined(await _found(request, Scope.READ), cancel_on_disconnect=_yes(request, "cancel_on_disconnect"))


async def join_stream(request: Request) -> Response:
    cancel = _yes(request, "cancel_on_disconnect")
    # Reading needs `read`; a connection whose end stops the run needs what stopping needs.
    run = await _found(request, Scope.RUN if cancel else Scope.READ)
    modes = stream_modes(request.query_params.getlist("stream_mode"))
    last = request.headers.get("last-event-id", "")
    return await streamed(run, modes=modes, last_event_id=last, cancel_on_disconnect=cancel)


async def cancel_run(request: Request) -> Response:
    def cancelled(caller: Caller) -> Run:
        run = _run_in(request, caller)
        if request.query_params.get("action", "interrupt") != "interrupt":
            raise BadInput("action", "this server supports only interrupt")
        if not services.cancel_run(run_id=run.pk, by=caller.username):
            raise Refused(404, "already_ended", f"run {run.pk} has already ended")
        return run

    run = await asked(request, Scope.RUN, cancelled)
    return joined(run) if _yes(request, "wait") else Response(status_code=202)


# --- shared ---------------------------------------------------------------------------------------------------------
async def _found(request: Request, scope: Scope) -> Run:
    return await asked(request, scope, lambda caller: _run_in(request, caller))


def _run_in(request: Request, caller: Caller) -> Run:
    return find_run(path_id(request, "thread_id"), path_id(request, "run_id"), caller.owner_id)


async def _created(request: Request) -> tuple[Run, RunRequest]:
    caller = await caller_of(request, Scope.RUN)
    thread_id = path_id(request, "thread_id")
    wanted = run_request(await json_body(request))
    return await _start(caller, thread_id, wanted), wanted


async def _start(caller: Caller, thread_id: UUID, wanted: RunRequest) -> Any:
    agent = LEAD_AGENT
    if needs_look_up(wanted.assistant, wanted.options):
        agent = await database().call(agent_of, wanted.assistant, wanted.options, f"{wanted.options_path}.agent_name")
    start = services.start_verb(
        thread_id=thread_id,
        owner_id=caller.owner_id,
        messages=wanted.messages,
        agent=agent,
        options=wanted.options,
        multitask=wanted.multitask,
    )
    start = replace(start, options={**start.options, **wanted.noted}, metadata={**wanted.metadata, **start.metadata})
    if wanted.create_thread and not await database().call(thread_exists, thread_id):
        await _create_if_missing(caller, thread_id)
    if wanted.multitask == MultitaskStrategy.INTERRUPT:
        return await database().call(_interrupting, start)
    return await database().write(start)


def _interrupting(start: Start) -> Run:
    """Start a run and end what its thread is at, at once: of many that interrupt each other the last one stays."""
    run, *_ended = commit([start, *interrupts_of(start.thread_id, start.owner_id)])
    if isinstance(run, RunsError):
        raise run
    started: Run = run
    return started


async def _create_if_missing(caller: Caller, thread_id: UUID) -> None:
    try:
        await database().write(OpenThread(owner_id=caller.owner_id, thread_id=thread_id))
    except IntegrityError:
        return  # made meanwhile, or somebody else's: the start says which


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


def _yes(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in _YES
