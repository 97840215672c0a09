"""Getting runs ready on the database thread: those that were claimed, and the children of one reply.

The children are checked one by one and inserted in one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from runs.lifecycle import Held, Progress, StartChild, commit
from runs.lifecycle.claims import Claimed
from runs.models import Run, new_id
from runs.worker import plans
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from engine.ports import ChildCall
    from runs.worker.graph_plans import GraphPlan
    from runs.worker.plans import Plan
    from subagents.registry import Registry


@dataclass(frozen=True, slots=True)
class Ready:
    """A claimed run and what it runs with, or why that cannot be said."""

    claimed: Claimed
    plan: Plan | GraphPlan | Exception


def ready(claimed: Claimed) -> Ready:
    upper = claimed.held.parent_thread_id if claimed.run.depth == 1 else None
    try:
        return Ready(claimed, plans.plan_for(claimed.run, upper))
    except Exception as fault:  # noqa: BLE001 - its execution raises it
        return Ready(claimed, fault)


@dataclass(frozen=True, slots=True)
class Own:
    """How many of the children may begin as this process's own at once, as whose, and until when unless renewed."""

    count: int
    worker: str
    held_until: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A delegation and the ids its child gets if it is started now."""

    call: ChildCall
    run_id: UUID = field(default_factory=new_id)
    thread_id: UUID = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Calls:
    """Delegations of one run that come together, and their reply when it is to be stored with them."""

    held: Held
    run: Run
    plan: Plan
    asked: Sequence[Asked]
    reply: Progress | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A child to wait for. `now` is False for one that this call had started before; `ready` is this process's own."""

    run_id: UUID
    thread_id: UUID
    now: bool
    ready: Ready | None = None


def start_children(calls: Calls, own: Own) -> list[Started | str | Exception]:
    """One outcome for each call: its child, the sentence that refuses it, or why the run must be given up (Fenced)."""
    now = registry.current(max_age=0)
    outcomes: list[Started | str | Exception | StartChild] = [_checked(calls, one, now) for one in calls.asked]
    verbs = [outcome for outcome in outcomes if isinstance(outcome, StartChild)]
    begun = [replace(verb, worker=own.worker, held_until=own.held_until) for verb in verbs[: own.count]]
    verbs = [*begun, *verbs[own.count :]]
    first = [] if calls.reply is None else [calls.reply]
    committed = iter(zip(verbs, commit([*first, *verbs])[len(first) :], strict=True))
    return [_started(*next(committed)) if isinstance(one, StartChild) else one for one in outcomes]


def _checked(calls: Calls, asked: Asked, now: Registry) -> StartChild | Started | str:
    run, call = calls.run, asked.call
    dispatch = plans.dispatch_for(run, calls.plan, call, now)
    if isinstance(dispatch, str):
        # A child that was started before stays this call's child, although it would not be started any more.
        child = plans.child_of(run, call.tool_call_id)
        return dispatch if child is None else Started(child.pk, child.thread_id, now=False)
    return StartChild(
        parent=calls.held,
        tool_call_id=call.tool_call_id,
        agent=dispatch.agent,
        title=dispatch.title,
        prompt=call.prompt,
        definition=dispatch.definition,
        model=dispatch.model,
        card=dispatch.card,
        run_id=asked.run_id,
        thread_id=asked.thread_id,
    )


def _started(verb: StartChild, outcome: tuple[Run, bool] | Exception) -> Started | Exception:
    if isinstance(outcome, Exception):
        return outcome
    child, now = outcome
    if not now or verb.held_until is None or child.queue_id is None:
        return Started(child.pk, child.thread_id, now)
    held = Held(child.pk, child.thread_id, child.fence, verb.parent.thread_id)
    claimed = Claimed(run=child, held=held, queue_id=child.queue_id, transcript=[verb.request()])
    return Started(child.pk, child.thread_id, now, ready(claimed))
