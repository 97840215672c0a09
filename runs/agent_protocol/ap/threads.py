"""The endpoints of agents and threads: what the LangGraph wire answers, in this protocol's shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.keys import Scope
from runs import agents, history
from runs.agent_protocol import states
from runs.agent_protocol import threads as langgraph
from runs.agent_protocol.access import asked, caller_of, database
from runs.agent_protocol.ap.shapes import agent_object, agent_schemas, states_of, thread_of
from runs.agent_protocol.bodies import an_object, json_body, path_id, some_metadata
from runs.agent_protocol.containing import contains
from runs.agent_protocol.errors import Refused
from runs.agent_protocol.fields import a_page, a_text
from runs.agent_protocol.messages import state_messages
from runs.agent_protocol.reading import check_owner, thread_answer
from runs.agent_protocol.shapes import assistant_id, json_response
from runs.agent_protocol.states import checkpoint_in
from runs.errors import CheckpointNotFound
from runs.lifecycle import UpdateState, UpdateThread
from runs.transcript import from_json
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from runs.agents import Choice

_LONGEST_NAME = 200


async def search_agents(request: Request) -> Response:
    await caller_of(request, Scope.READ)
    body = await json_body(request)
    page, metadata = a_page(body), some_metadata(body)
    name = (a_text(body, "name", most=_LONGEST_NAME) or "").lower()

    def found() -> list[dict[str, Any]]:
        every = [agent_object(choice) for choice in agents.choices(registry.current())]
        fitting = [one for one in every if name in f"{one['agent_id']} {one['name']}".lower()]
        return [one for one in fitting if contains(one["metadata"], metadata)][page.part]

    return json_response(await database().call(found))


async def get_agent(request: Request) -> Response:
    return json_response(await _agent(request, agent_object))


async def get_schemas(request: Request) -> Response:
    return json_response(await _agent(request, agent_schemas))


async def _agent(request: Request, shape: Callable[[Choice], dict[str, Any]]) -> dict[str, Any]:
    wanted: str = request.path_params["agent_id"]

    def found() -> dict[str, Any]:
        for choice in agents.choices(registry.current()):
            if wanted in {choice.name, assistant_id(choice.name)}:
                return shape(choice)
        raise Refused(404, "not_found", f"no agent {wanted[:80]}")

    return await asked(request, Scope.READ, lambda _caller: found())


async def create_thread(request: Request) -> Response:
    return _reshaped(await langgraph.create_thread(request))


async def get_thread(request: Request) -> Response:
    return _reshaped(await langgraph.get_thread(request))


async def copy_thread(request: Request) -> Response:
    return _reshaped(await langgraph.copy_thread(request))


async def search_threads(request: Request) -> Response:
    answer = await langgraph.search_threads(request)
    found = [thread_of(one) for one in from_json(bytes(answer.body))]
    kept = {name: value for name, value in answer.headers.items() if name.startswith("x-pagination")}
    return json_response(found, headers=kept)


async def get_history(request: Request) -> Response:
    return json_response(states_of(bytes((await states.get_history(request)).body)))


async def patch_thread(request: Request) -> Response:
    """Metadata is merged; values and messages make a new checkpoint, from the newest or from the one that is named."""
    caller = await caller_of(request, Scope.RUN)
    thread_id = path_id(request, "thread_id")
    body = await json_body(request)
    metadata, values = some_metadata(body), an_object(body, "values")
    messages = [] if body.get("messages") is None else state_messages(body["messages"], "messages")
    if "messages" in values:
        messages = [*state_messages(values["messages"], "values.messages"), *messages]
    checkpoint = checkpoint_in(body, thread_id)
    at = None if checkpoint is None else history.seq_of(thread_id, checkpoint)
    await database().call(check_owner, thread_id, caller.owner_id)
    if values or messages:
        if checkpoint is not None and at is None:
            raise CheckpointNotFound(thread_id)
        others = {name: value for name, value in values.items() if name != "messages"}
        verb = UpdateState(thread_id=thread_id, owner_id=caller.owner_id, messages=messages, values=others, at=at)
        await database().write(verb)
    await database().write(UpdateThread(thread_id=thread_id, owner_id=caller.owner_id, metadata=metadata))
    return json_response(thread_of(from_json(await database().call(thread_answer, thread_id, caller.owner_id))))


def _reshaped(answer: Response) -> Response:
    return json_response(thread_of(from_json(bytes(answer.body))))
