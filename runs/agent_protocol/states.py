"""The endpoints of a thread's state: read it, now or at a checkpoint, list its history, change it, fork from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from access.keys import Scope
from runs import history
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.bodies import an_id, an_object, json_body, path_id
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.fields import MAX_PAGE, a_count, a_selection
from runs.agent_protocol.graph_updates import graph_of, graph_updated
from runs.agent_protocol.messages import state_messages
from runs.agent_protocol.past import STATE_FIELDS, checkpoint_object, earlier, past_of, state_now
from runs.agent_protocol.shapes import joined_json, json_response
from runs.errors import BadInput, CheckpointNotFound
from runs.graphs import state as graph_state
from runs.lifecycle import UpdateState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from starlette.requests import Request
    from starlette.responses import Response

    from access.keys import Caller

# The nodes of an agent's graph as the wire shows it; see `drawn_graph`.
NODES: Final = ("__start__", "model", "tools", "__end__")
_MAX_SUPERSTEPS = 1000
_YES = frozenset({"1", "true"})


async def get_state(request: Request) -> Response:
    """The state now, or at the checkpoint in the path."""
    thread_id = path_id(request, "thread_id")
    checkpoint = path_id(request, "checkpoint_id") if "checkpoint_id" in request.path_params else None
    query = request.query_params
    wanted = [name.partition(".")[0] for text in query.getlist("select") for name in text.split(",") if name]
    fields = a_selection({"select": wanted}, STATE_FIELDS)
    subgraphs = query.get("subgraphs", "").lower() in _YES

    def answer(caller: Caller) -> bytes:
        return _state(thread_id, caller.owner_id, checkpoint, fields, subgraphs=subgraphs)

    return json_response(await asked(request, Scope.READ, answer))


async def post_state_checkpoint(request: Request) -> Response:
    """The state at the checkpoint in the body."""
    caller = await caller_of(request, Scope.READ)
    thread_id = path_id(request, "thread_id")
    body = await json_body(request)
    checkpoint, subgraphs = checkpoint_in(body, thread_id), bool(body.get("subgraphs"))

    def answer() -> bytes:
        return _state(thread_id, caller.owner_id, checkpoint, STATE_FIELDS, subgraphs=subgraphs)

    return json_response(await database().call(answer))


def _state(thread_id: UUID, owner_id: int, checkpoint: UUID | None, fields: Sequence[str], *, subgraphs: bool) -> bytes:
    past = past_of(thread_id, owner_id)
    if graph_state.is_graphs(thread_id):
        return _graphs_state(thread_id, checkpoint, fields)
    if checkpoint is None:
        return state_now(past, fields, subgraphs=subgraphs)
    return past.states([past.seq_of(checkpoint)], fields, subgraphs=subgraphs)[0]


def _graphs_state(thread_id: UUID, checkpoint: UUID | None, fields: Sequence[str]) -> bytes:
    found = graph_state.state_of(thread_id, None if checkpoint is None else str(checkpoint))
    if found is None:
        raise CheckpointNotFound(thread_id)
    return joined_json({name: found[name] for name in fields}, {})


async def get_history(request: Request) -> Response:
    caller = await caller_of(request, Scope.READ)
    thread_id = path_id(request, "thread_id")
    body = _in_query(request) if request.method == "GET" else await json_body(request)
    limit = min(a_count(body, "limit", 10, least=1), MAX_PAGE)
    before, upto = _before(body, thread_id), checkpoint_in(body, thread_id)
    metadata, fields = an_object(body, "metadata"), a_selection(body, STATE_FIELDS)

    def answer() -> bytes:
        past = past_of(thread_id, caller.owner_id)
        if graph_state.is_graphs(thread_id):
            found = graph_state.history_of(thread_id, limit=limit, before=str(before) if before else None)
            states = (joined_json({name: one[name] for name in fields}, {}) for one in found)
            return b"[" + b",".join(states) + b"]"
        seqs = earlier(
            past,
            before=past.seq_of(before) if before else None,
            upto=past.seq_of(upto) if upto else None,
            metadata=metadata,
            limit=limit,
        )
        return b"[" + b",".join(past.states(seqs, fields)) + b"]"

    return json_response(await database().call(answer))


def _in_query(request: Request) -> dict[str, Any]:
    """`limit` and `before` of a GET, as a body would have them."""
    query: dict[str, Any] = {name: value for name, value in request.query_params.items() if name in {"limit", "before"}}
    if (limit := query.get("limit", "")).isascii() and limit.isdigit() and len(limit) < 10:
        query["limit"] = int(limit)
    return query


async def update_state(request: Request) -> Response:
    caller = await caller_of(request, Scope.RUN)
    thread_id = path_id(request, "thread_id")
    body = await json_body(request)
    if await database().call(graph_of, thread_id, caller.owner_id):
        return json_response(await graph_updated(caller, thread_id, body))
    verb = _update(body, thread_id, caller.owner_id, checkpoint_in(body, thread_id))
    place = checkpoint_object(thread_id, await database().write(verb))
    answer = {"checkpoint": place, "configurable": place, "checkpoint_id": place["checkpoint_id"]}
    return json_response(answer)


def _update(body: Mapping[str, Any], thread_id: UUID, owner_id: int, checkpoint: UUID | None) -> UpdateState:
    node = body.get("as_node")
    if node is not None and node not in NODES:
        raise Refused(400, "unknown_node", f"Node {str(node)[:80]} does not exist", field="as_node", nodes=list(NODES))
    at = None
    if checkpoint is not None:
        at = history.seq_of(thread_id, checkpoint)
        if at is None:
            raise CheckpointNotFound(thread_id)
    messages: list[dict[str, Any]] = []
    values: dict[str, Any] = {}
    for place, part in enumerate(_parts(body.get("values"))):
        said = {**part}
        if said.get("messages") is not None:
            messages.extend(
                state_messages(said["messages"], f"values[{place}].messages" if place else "values.messages")
            )
        said.pop("messages", None)
        values |= said
    return UpdateState(thread_id=thread_id, owner_id=owner_id, messages=messages, values=values, at=at)


def _parts(values: Any) -> list[dict[str, Any]]:
    """`values` may be null, an object, or a list of objects that are applied one after the other."""
    parts = [] if values is None else values if isinstance(values, list) else [values]
    if not all(isinstance(part, dict) for part in parts):
        raise BadInput("values", "expected an object, a list of objects, or null")
    return parts


def superstep_updates(body: Mapping[str, Any], thread_id: UUID, owner_id: int) -> list[UpdateState]:
    """The updates a new thread begins with: the body's `supersteps`, [{"updates": [{"values", "as_node"}]}]."""
    steps = body.get("supersteps")
    if steps is None:
        return []
    if not isinstance(steps, list) or len(steps) > _MAX_SUPERSTEPS:
        raise BadInput("supersteps", f"expected a list of at most {_MAX_SUPERSTEPS} objects")
    found: list[UpdateState] = []
    for place, step in enumerate(steps):
        updates = step.get("updates") if isinstance(step, dict) else None
        if not isinstance(updates, list) or not all(isinstance(update, dict) for update in updates):
            raise BadInput(f"supersteps[{place}].updates", "expected a list of objects")
        if any(update.get("command") for update in updates):
            raise BadInput(f"supersteps[{place}].updates", "a new thread has nothing that a command could resume")
        found.extend(_update(update, thread_id, owner_id, None) for update in updates)
    return found[:_MAX_SUPERSTEPS]


def checkpoint_in(body: Mapping[str, Any], thread_id: UUID) -> UUID | None:
    """The checkpoint that a body names, by `checkpoint_id` or in `checkpoint`; None when it names none."""
    place = an_object(body, "checkpoint")
    if place.get("checkpoint_ns") or place.get("checkpoint_map"):
        raise CheckpointNotFound(thread_id)  # a subagent's state is a thread of its own
    value = place.get("checkpoint_id") if place.get("checkpoint_id") is not None else body.get("checkpoint_id")
    if value is None:
        return None
    return an_id(value, "checkpoint.checkpoint_id" if place.get("checkpoint_id") is not None else "checkpoint_id")


def _before(body: Mapping[str, Any], thread_id: UUID) -> UUID | None:
    """`before` is an id, a checkpoint, or a config that holds one."""
    value = body.get("before")
    if value is None or isinstance(value, str):
        return None if value is None else an_id(value, "before")
    place = an_object(body, "before")
    inner = an_object(place, "configurable", path="before.configurable") or place
    return checkpoint_in({"checkpoint": inner}, thread_id)
