"""The endpoints of threads as wholes: made, found, changed, copied, removed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError
from starlette.responses import Response

from access.keys import Scope
from runs import keeping, services
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.bodies import a_choice, an_id, json_body, path_id, some_metadata
from runs.agent_protocol.fields import some_ids
from runs.agent_protocol.reading import thread_answer
from runs.agent_protocol.shapes import joined_json, json_response, thread_object
from runs.agent_protocol.states import superstep_updates
from runs.agent_protocol.thread_search import found_threads, listed, wanted_listing, wanted_threads
from runs.errors import BadInput, RunsError, ThreadExists, ThreadNotFound
from runs.lifecycle import OpenThread, UpdateThread, commit, commit_one
from runs.models import Thread, new_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller
    from runs.lifecycle import UpdateState


async def create_thread(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    wanted = an_id(body["thread_id"], "thread_id") if body.get("thread_id") is not None else None
    if_exists = a_choice(body, "if_exists", ("raise", "do_nothing"), "raise")
    verb = OpenThread(
        owner_id=caller.owner_id, thread_id=wanted or new_id(), metadata=some_metadata(body), ttl=_ttl(body)
    )
    updates = superstep_updates(body, verb.thread_id, caller.owner_id)
    try:
        thread = await (database().call(_made, verb, updates) if updates else database().write(verb))
    except IntegrityError:
        if if_exists == "raise" or wanted is None:
            raise ThreadExists(verb.thread_id) from None
        return json_response(await database().call(thread_answer, wanted, caller.owner_id))
    if updates:
        return json_response(await database().call(thread_answer, thread.pk, caller.owner_id))
    return json_response(thread_object(thread, None))


def _made(verb: OpenThread, updates: list[UpdateState]) -> Thread:
    """A thread that begins with a state, all or nothing: what cannot be applied leaves no thread."""
    thread: Thread = commit_one(verb)
    for update in updates:
        (result,) = commit([update])
        if isinstance(result, RunsError):
            services.delete_thread(thread_id=thread.pk, by="")
            raise result
    return thread


async def get_thread(request: Request) -> Response:
    def answer(caller: Caller) -> bytes:
        thread_id = path_id(request, "thread_id")
        whole = thread_answer(thread_id, caller.owner_id)
        included = {one for text in request.query_params.getlist("include") for one in text.split(",")}
        return whole[:-1] + b"," + joined_json({"ttl": _ttl_object(thread_id)}, {})[1:] if "ttl" in included else whole

    return json_response(await asked(request, Scope.READ, answer))


async def update_thread(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    verb = UpdateThread(
        thread_id=path_id(request, "thread_id"),
        owner_id=caller.owner_id,
        metadata=some_metadata(body),
        ttl=_ttl(body),
    )
    await database().write(verb)
    if "return=minimal" in request.headers.get("prefer", "").replace(" ", ""):
        return Response(status_code=204, headers={"Preference-Applied": "return=minimal"})
    return json_response(await database().call(thread_answer, verb.thread_id, caller.owner_id))


async def delete_thread(request: Request) -> Response:
    def deleted(caller: Caller) -> None:
        thread_id = path_id(request, "thread_id")
        if not _owned([thread_id], caller):
            raise ThreadNotFound(thread_id)
        services.delete_thread(thread_id=thread_id, by=caller.username)

    await asked(request, Scope.RUN, deleted)
    return Response(status_code=204)


async def search_threads(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    body = await json_body(request)
    wanted, listing = wanted_threads(body), wanted_listing(body)
    answer, total = await database().call(listed, wanted, listing, caller.owner_id)
    return json_response(answer, headers=listing.page.headers(total))


async def count_threads(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    wanted = wanted_threads(await json_body(request))
    return json_response(await database().call(lambda: found_threads(wanted, caller.owner_id).count()))


async def copy_thread(request: Request) -> Response:
    def copied(caller: Caller) -> bytes:
        copy = keeping.copy_thread(thread_id=path_id(request, "thread_id"), owner_id=caller.owner_id)
        return thread_answer(copy.pk, caller.owner_id)

    return json_response(await asked(request, Scope.RUN, copied))


async def prune_threads(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    thread_ids = some_ids(body, "thread_ids", required=True) or []
    strategy = a_choice(body, "strategy", keeping.STRATEGIES, keeping.DELETE)

    own = await database().call(_owned, thread_ids, caller)
    for thread_id in own:  # one after the other: everybody's requests share the database thread
        await database().call(lambda pk=thread_id: keeping.prune(pk, strategy, by=caller.username))
    return json_response({"pruned_count": len(own)})


def _owned(thread_ids: list[UUID], caller: Caller) -> list[UUID]:
    own = Thread.objects.filter(owner_id=caller.owner_id, pk__in=thread_ids)
    return list(own.order_by("pk").values_list("pk", flat=True))


def _ttl(body: Mapping[str, Any]) -> tuple[float, str] | None:
    """The body's `ttl`: minutes, or {"ttl": minutes, "strategy"}."""
    value = body.get("ttl")
    if value is None:
        return None
    if not isinstance(value, dict):
        value = {"ttl": value}
    minutes = value.get("ttl")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes <= keeping.MAX_TTL_MINUTES:
        raise BadInput("ttl", f"expected minutes, more than 0 and at most {keeping.MAX_TTL_MINUTES:,}")
    if value.get("strategy", keeping.DELETE) not in keeping.STRATEGIES:
        raise BadInput("ttl.strategy", f"expected one of {', '.join(keeping.STRATEGIES)}")
    return float(minutes), value.get("strategy", keeping.DELETE)


def _ttl_object(thread_id: UUID) -> dict[str, Any] | None:
    thread = Thread.objects.only("ttl_minutes", "ttl_strategy", "updated_at").filter(pk=thread_id).first()
    if thread is None or thread.ttl_minutes is None:
        return None
    return {
        "strategy": thread.ttl_strategy,
        "ttl_minutes": thread.ttl_minutes,
        "expires_at": (thread.updated_at + timedelta(minutes=thread.ttl_minutes)).isoformat(),
    }
