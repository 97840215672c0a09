"""The endpoints of assistants: those of the system, and those that clients made."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from access.keys import Scope
from runs.agent_protocol import drawing
from runs.agent_protocol import own_assistants as own
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.bodies import a_choice, an_id, an_object, json_body, path_id, some_metadata
from runs.agent_protocol.containing import contains
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.fields import a_count, a_page, a_selection, a_text
from runs.agent_protocol.own_assistants import Written
from runs.agent_protocol.shapes import STARTED_AT, json_response
from runs.assistants import SystemAssistant, system_assistants
from runs.errors import BadInput
from runs.models import Assistant, AssistantVersion, new_id
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller

_YES = frozenset({"1", "true"})
_NAME_LENGTH, _DESCRIPTION_LENGTH = 200, 20_000
ASSISTANT_FIELDS: Final = (
    "assistant_id",
    "graph_id",
    "config",
    "context",
    "metadata",
    "name",
    "created_at",
    "updated_at",
    "version",
    "description",
)
_SORTS: Final = ("assistant_id", "graph_id", "name", "created_at", "updated_at")


async def create_assistant(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    body = await json_body(request)
    wanted = an_id(body["assistant_id"], "assistant_id") if body.get("assistant_id") is not None else new_id()
    reuse = a_choice(body, "if_exists", ("raise", "do_nothing"), "raise") == "do_nothing"
    written = _written(body)
    if written.graph_id is None:
        raise BadInput("graph_id", "this field is required")

    def created() -> dict[str, Any]:
        if (known := _system(wanted)) is not None:
            if reuse:
                return system_object(known)
            raise Refused(409, "exists", f"assistant {wanted} exists already")
        return own_object(own.create_assistant(wanted, written, caller.owner_id, reuse=reuse))

    return json_response(await database().call(created))


async def get_assistant(request: Request) -> Response:
    return json_response(await asked(request, Scope.READ, lambda caller: _object(request, caller)))


async def update_assistant(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    assistant_id = path_id(request, "assistant_id")
    written = _written(await json_body(request))

    def updated() -> dict[str, Any]:
        _refuse_system(assistant_id)
        return own_object(own.update_assistant(assistant_id, written, caller.owner_id))

    return json_response(await database().call(updated))


async def delete_assistant(request: Request) -> Response:
    with_threads = request.query_params.get("delete_threads", "").lower() in _YES

    def deleted(caller: Caller) -> None:
        assistant_id = path_id(request, "assistant_id")
        _refuse_system(assistant_id)
        own.delete_assistant(assistant_id, caller.owner_id, with_threads=with_threads, by=caller.username)

    await asked(request, Scope.RUN, deleted)
    return Response(status_code=204)


async def search_assistants(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    body = await json_body(request)
    page, fields = a_page(body), a_selection(body, ASSISTANT_FIELDS)
    by = a_choice(body, "sort_by", _SORTS, "created_at")
    falling = a_choice(body, "sort_order", ("asc", "desc"), "desc") == "desc"
    wanted = _wanted(body)
    found = await database().call(_found, wanted, caller.owner_id)
    found.sort(key=itemgetter(by, "assistant_id"), reverse=falling)
    answer = [{name: one[name] for name in fields} for one in found[page.part]]
    return json_response(answer, headers=page.headers(len(found)))


async def count_assistants(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    wanted = _wanted(await json_body(request))
    return json_response(len(await database().call(_found, wanted, caller.owner_id)))


async def get_versions(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    assistant_id = path_id(request, "assistant_id")
    body = await json_body(request)
    page, metadata = a_page(body), some_metadata(body)

    def versions() -> list[dict[str, Any]]:
        if (known := _system(assistant_id)) is not None:
            return [system_object(known)]
        return [own_object(version) for version in own.versions_of(assistant_id, caller.owner_id)]

    found = [one for one in await database().call(versions) if contains(one["metadata"], metadata)]
    return json_response(found[page.part], headers=page.headers(len(found)))


async def set_latest(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    assistant_id = path_id(request, "assistant_id")
    version = a_count(await json_body(request), "version", 0, least=1)
    if not version:
        raise BadInput("version", "this field is required")

    def changed() -> dict[str, Any]:
        _refuse_system(assistant_id)
        return own_object(own.set_latest(assistant_id, version, caller.owner_id))

    return json_response(await database().call(changed))


async def get_graph(request: Request) -> Response:
    await asked(request, Scope.READ, lambda caller: _object(request, caller))
    return json_response(drawing.GRAPH)


async def get_schemas(request: Request) -> Response:
    found = await asked(request, Scope.READ, lambda caller: _object(request, caller))
    return json_response({"graph_id": found["graph_id"], **drawing.SCHEMAS})


async def get_subgraphs(request: Request) -> Response:
    """None: a subagent's run is a thread of its own, not a part of its lead's graph."""
    await asked(request, Scope.READ, lambda caller: _object(request, caller))
    return json_response({})


# --- shapes -----------------------------------------------------------------------------------------------------------
def system_object(one: SystemAssistant) -> dict[str, Any]:
    return {
        "assistant_id": one.id,
        "graph_id": one.name,
        "config": {},
        "context": {},
        "metadata": {"created_by": "system", "kind": str(one.kind)},
        "name": one.label or one.name,
        "created_at": STARTED_AT,
        "updated_at": STARTED_AT,
        "version": 1,
        "description": one.description or None,
    }


def own_object(one: Assistant | AssistantVersion) -> dict[str, Any]:
    updated = one.updated_at if isinstance(one, Assistant) else one.created_at
    return {
        "assistant_id": str(one.pk if isinstance(one, Assistant) else one.assistant_id),
        "graph_id": one.graph_id,
        "config": one.config,
        "context": one.context,
        "metadata": one.metadata,
        "name": one.name,
        "created_at": one.created_at.isoformat(),
        "updated_at": updated.isoformat(),
        "version": one.version,
        "description": one.description or None,
    }


# --- shared -----------------------------------------------------------------------------------------------------------
def _object(request: Request, caller: Caller) -> dict[str, Any]:
    assistant_id = path_id(request, "assistant_id")
    known = _system(assistant_id)
    return system_object(known) if known else own_object(own.find_assistant(assistant_id, caller.owner_id))


def _system(assistant_id: UUID) -> SystemAssistant | None:
    return next((one for one in system_assistants(registry.current()) if one.id == str(assistant_id)), None)


def _refuse_system(assistant_id: UUID) -> None:
    if (known := _system(assistant_id)) is not None:
        raise Refused(
            403, "system_assistant", f"{known.name} is an assistant of the system: make one of your own instead"
        )


def _wanted(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": some_metadata(body),
        "graph_id": a_text(body, "graph_id", most=_NAME_LENGTH),
        "name": a_text(body, "name", most=_NAME_LENGTH),
    }


def _found(wanted: Mapping[str, Any], owner_id: int) -> list[dict[str, Any]]:
    """What the system has and this person made, as far as it is wanted; a name may be a part of it, in any case."""
    found = [system_object(one) for one in system_assistants(registry.current())]
    found += [own_object(one) for one in Assistant.objects.filter(owner_id=owner_id)]
    name = (wanted["name"] or "").casefold()
    return [
        one
        for one in found
        if contains(one["metadata"], wanted["metadata"])
        and (wanted["graph_id"] is None or one["graph_id"] == wanted["graph_id"])
        and name in one["name"].casefold()
    ]


def _written(body: Mapping[str, Any]) -> Written:
    context = an_object(body, "context") if body.get("context") is not None else None
    config = an_object(body, "config") if body.get("config") is not None else None
    if context and config and an_object(config, "configurable", path="config.configurable"):
        raise Refused(400, "invalid", "give either context or config.configurable, not both")
    name = a_text(body, "name", most=_NAME_LENGTH)
    return Written(
        graph_id=a_text(body, "graph_id", most=64),
        name=name or None,
        description=a_text(body, "description", most=_DESCRIPTION_LENGTH),
        config=config,
        context=context,
        metadata=some_metadata(body) or None,
    )
