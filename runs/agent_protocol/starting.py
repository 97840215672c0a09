"""From a checked request to a run: on a thread of the caller's, or on one made for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from access.keys import Scope
from runs import history, services
from runs.agent_protocol.access import caller_of, database
from runs.agent_protocol.assistants import Target, needs_look_up, target_of
from runs.agent_protocol.bodies import json_body, path_id
from runs.agent_protocol.reading import check_owner, thread_exists
from runs.agent_protocol.run_request import run_request
from runs.agent_protocol.targets import check_webhook
from runs.errors import CheckpointNotFound, RunsError
from runs.lifecycle import OpenThread, StartAlone, commit
from runs.lifecycle.commit import again_after_deadlock
from runs.models import Run, new_id
from runs.services import LEAD_AGENT, MultitaskStrategy
from subagents import registry
from subagents.errors import UnknownAgent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from starlette.requests import Request

    from access.keys import Caller
    from runs.agent_protocol.run_request import RunRequest
    from runs.lifecycle import Start


async def created(request: Request) -> tuple[Run, RunRequest]:
    """A run on the thread in the request's path."""
    caller = await caller_of(request, Scope.RUN)
    thread_id = path_id(request, "thread_id")
    wanted = run_request(await json_body(request))
    return await start_on(caller, thread_id, wanted), wanted


async def created_alone(request: Request) -> tuple[Run, RunRequest]:
    """A run without a thread of the caller's."""
    caller = await caller_of(request, Scope.RUN)
    wanted = run_request(await json_body(request))
    run: Any = await database().write(await alone(caller, wanted))
    return run, wanted


async def alone(caller: Caller, wanted: RunRequest) -> StartAlone:
    """The verb of a run on a thread made for it, which goes after the run unless it is to be kept."""
    thread_id = new_id()
    opened = OpenThread(owner_id=caller.owner_id, thread_id=thread_id, temporary=not wanted.keep)
    return StartAlone(opened=opened, start=await _start_verb(caller, thread_id, wanted))


def all_or_none(verbs: Sequence[StartAlone]) -> list[Run]:
    """Start every one of these runs, or none of them and raise why not."""

    def transact() -> list[Run]:
        with transaction.atomic():
            runs = commit(verbs)
            for run in runs:
                if isinstance(run, RunsError):
                    raise run
            return runs

    return again_after_deadlock(transact)


async def _start_verb(caller: Caller, thread_id: UUID, wanted: RunRequest) -> Start:
    if wanted.webhook:
        await check_webhook(wanted.webhook)
    target = Target(agent=LEAD_AGENT, options=wanted.options)
    if needs_look_up(wanted.assistant, wanted.options):
        path = f"{wanted.options_path}.agent_name"
        target = await database().call(target_of, wanted.assistant, wanted.options, path, caller.owner_id)
    if target.agent != LEAD_AGENT and await database().call(_is_graph, target.agent):
        return _start_of_graph(caller, thread_id, target, wanted)
    if wanted.not_for_agents is not None:
        raise wanted.not_for_agents
    start = services.start_verb(
        thread_id=thread_id,
        owner_id=caller.owner_id,
        messages=wanted.messages,
        agent=target.agent,
        options=target.options,
        multitask=wanted.multitask,
    )
    return replace(
        start,
        options={**start.options, **wanted.noted, **target.noted},
        metadata={**wanted.metadata, **start.metadata},
        from_seq=_number_of(wanted.checkpoint, thread_id),
        delay_seconds=wanted.delay_seconds,
        webhook=wanted.webhook,
    )


def _is_graph(agent: str) -> bool:
    try:
        return registry.current().lead(agent).is_graph
    except UnknownAgent:
        return False  # a subagent, which runs by itself


def _start_of_graph(caller: Caller, thread_id: UUID, target: Target, wanted: RunRequest) -> Start:
    messages, asked = wanted.for_graphs()
    if target.laid_down:
        kind = "context" if "context" in asked else "configurable"
        asked = {**asked, kind: {**target.laid_down, **asked.get(kind, {})}}
    start = services.graph_start_verb(
        thread_id=thread_id,
        owner_id=caller.owner_id,
        agent=target.agent,
        messages=messages,
        graph=asked,
        multitask=wanted.multitask,
    )
    return replace(
        start,
        options={**start.options, **wanted.noted, **target.noted},
        metadata={**wanted.metadata, **start.metadata},
        delay_seconds=wanted.delay_seconds,
        webhook=wanted.webhook,
    )


def _number_of(checkpoint: UUID | None, thread_id: UUID) -> int | None:
    seq = None if checkpoint is None else history.seq_of(thread_id, checkpoint)
    if checkpoint is not None and seq is None:
        raise CheckpointNotFound(thread_id)
    return seq


async def start_on(caller: Caller, thread_id: UUID, wanted: RunRequest) -> Any:
    """A run on a thread of the caller's. Raises ThreadNotFound and what the strategy says."""
    start = await _start_verb(caller, thread_id, wanted)
    if wanted.create_thread and not await database().call(thread_exists, thread_id):
        await _create_if_missing(caller, thread_id)
    if wanted.multitask in {MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK}:
        return await database().call(_in_place, start, wanted.multitask)
    return await database().write(start)


def _in_place(start: Start, multitask: MultitaskStrategy) -> Run:
    """Start a run and end what its thread is at: of many that interrupt each other the last one stays."""
    check_owner(start.thread_id, start.owner_id)
    return services.begin(start, multitask)


async def _create_if_missing(caller: Caller, thread_id: UUID) -> None:
    try:
        await database().write(OpenThread(owner_id=caller.owner_id, thread_id=thread_id))
    except IntegrityError:
        return  # made meanwhile, or somebody else's: the start says which
