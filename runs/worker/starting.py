"""Starting the children of one reply: each checked, all inserted in one transaction. Call it on the database thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runs.lifecycle import Held, StartChild, commit
from runs.models import Run, new_id
from runs.worker import plans
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from engine.ports import ChildCall
    from subagents.registry import Registry


@dataclass(frozen=True, slots=True)
class Asked:
    """A delegation and the ids its child gets if it is started now."""

    call: ChildCall
    run_id: UUID = field(default_factory=new_id)
    thread_id: UUID = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Started:
    """A child to wait for. `now` is False for one that this call had started before."""

    run_id: UUID
    thread_id: UUID
    now: bool


def start_children(held: Held, run: Run, plan: plans.Plan, asked: Sequence[Asked]) -> list[Started | str | Exception]:
    """One outcome for each call: its child, the sentence that refuses it, or why the run must be given up (Fenced)."""
    now = registry.current(max_age=0)
    outcomes: list[Started | str | Exception | StartChild] = [_checked(held, run, plan, one, now) for one in asked]
    verbs = [outcome for outcome in outcomes if isinstance(outcome, StartChild)]
    committed = iter(commit(verbs) if verbs else ())
    return [_started(next(committed)) if isinstance(one, StartChild) else one for one in outcomes]


def _checked(held: Held, run: Run, plan: plans.Plan, asked: Asked, now: Registry) -> StartChild | Started | str:
    call = asked.call
    dispatch = plans.dispatch_for(run, plan, call, now)
    if isinstance(dispatch, str):
        # A child that was started before stays this call's child, although it would not be started any more.
        child = plans.child_of(run, call.tool_call_id)
        return dispatch if child is None else Started(child.pk, child.thread_id, now=False)
    return StartChild(
        parent=held,
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


def _started(outcome: tuple[Run, bool] | Exception) -> Started | Exception:
    if isinstance(outcome, Exception):
        return outcome
    child, now = outcome
    return Started(child.pk, child.thread_id, now)
