"""Continue: a new run that starts from where another one was stopped, with the limit raised that stopped it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from engine.limits import limits_from_json
from runs import raising, services
from runs.errors import NotContinuable, RunNotFound
from runs.lifecycle import ContinueChild, commit_one
from runs.models import Run, new_id
from runs.statuses import ENDED, RunStatus
from subagents import registry
from subagents.matching import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from runs.transcript import WireMessage

# What the model reads.
_GO_ON = "Continue where you stopped. Do not repeat what is done already."
_TREE_LAYER = "runs.token_budget"


def may_continue(run: Run) -> bool:
    """Whether going on is offered for this run: it ended before it was finished."""
    return run.status in ENDED and (run.status != RunStatus.SUCCESS or bool(run.stop_reason))


def continue_run(*, run_id: UUID, limits: Mapping[str, Any] | None = None) -> Run:
    """Start a run from the transcript of one that was capped, failed, timed out or was cancelled.

    `limits` names what to raise and how far ({"max_turns": 120}); without it, the limit that stopped the run is
    doubled, within its ceiling. A lead's new run follows on its thread. A child's runs on the child's thread with a
    card of its own; when it succeeds its lead gets the answer as a message. Raises RunNotFound, NotContinuable,
    ThreadBusy, TooManyPending, and BadInput with the field's path.
    """
    wanted = None if limits is None else raising.checked(limits)
    newer = Run.objects.filter(thread_id=OuterRef("thread_id"), created_at__gt=OuterRef("created_at"))
    run = Run.objects.select_related("thread", "parent").annotate(outdone=Exists(newer)).filter(pk=run_id).first()
    if run is None:
        raise RunNotFound(run_id)
    if not may_continue(run):
        raise NotContinuable(run_id, _("It is finished.") if run.status in ENDED else _("It has not ended."))
    if run.outdone:
        raise NotContinuable(run_id, _("Something newer followed it in its conversation. Send a message instead."))
    if wanted is None:
        wanted = raising.offered(status=run.status, stop_reason=run.stop_reason, detail=run.stop_detail)
    return _continue_lead(run, wanted) if run.parent is None else _continue_child(run, run.parent, wanted)


def _message(run: Run) -> WireMessage:
    return {"type": "human", "id": str(new_id()), "content": _GO_ON, "continues": str(run.pk)}


def _continue_lead(run: Run, raised: Mapping[str, int]) -> Run:
    start = services.start_verb(
        thread_id=run.thread_id,
        owner_id=run.thread.owner_id,
        messages=[_message(run)],
        agent=run.agent,
        options={name: value for name, value in run.options.items() if name != "raised"},
        multitask=services.MultitaskStrategy.REJECT,
    )
    options = {**start.options, "raised": {**run.options.get("raised", {}), **raised}}
    started: Run = commit_one(replace(start, options=options, continues_id=run.pk))
    return started


def _continue_child(run: Run, parent: Run, raised: Mapping[str, int]) -> Run:
    if run.stop_detail.get("layer") == _TREE_LAYER:
        said = _("%(layer)s bounds its lead and all its subagents together. Send the lead a message instead.")
        raise NotContinuable(run.pk, said % {"layer": _TREE_LAYER})
    found = registry.resolve_dispatch(run.agent, allowed=[run.agent])
    if isinstance(found, Refusal):
        raise NotContinuable(run.pk, _("The subagent %(name)s may not run any more.") % {"name": run.agent})
    limits = raising.with_raised(limits_from_json(run.definition["limits"]), raised)
    verb = ContinueChild(
        old=run,
        parent_thread_id=parent.thread_id,
        message=_message(run),
        definition={**run.definition, "limits": asdict(limits)},
        card={
            "display_name": run.definition.get("display_name") or run.agent,
            "max_turns": limits.max_turns,
            "timeout_seconds": limits.timeout_seconds,
            "max_tokens": limits.tokens.max_tokens if limits.tokens else None,
        },
    )
    started: Run = commit_one(verb)
    return started
