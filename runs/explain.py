"""Why is this run as it is: what happened, which limit did it, who set that limit, and one way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from engine.reasons import from_plain
from engine.stop import StopReason
from runs.statuses import DelegationOff, ErrorCode, RunStatus
from subagents.wording import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runs.models import Run

    Words = Callable[[], str]  # in the language that is active when it is called


REASON: Final = "reason"  # where the parts of an error's sentence stand in the detail of what stopped a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """In the active language. `limit` and `layer` are empty when no setting had a part in it."""

    what: str  # one sentence
    way_out: str = ""  # one sentence
    limit: str = ""  # a number with its unit
    layer: str = ""  # the path of the setting that set the limit

    @property
    def sentence(self) -> str:
        return f"{self.what} {self.way_out}".strip()


# Keyed by the cap and, where the guard tells kinds apart, by "cap kind".
_CAPS: dict[str, tuple[Words, Words, Words]] = {
    StopReason.TURN_CAPPED: (
        lambda: _(
            "Stopped by the turn limit: it used all %(limit)s model calls (%(layer)s), so the answer is what it had by"
            " then."
        ),
        lambda: _("Continue with a higher limit, or ask for less at once."),
        lambda: _("%(limit)s model calls"),
    ),
    StopReason.TOKEN_CAPPED: (
        lambda: _(
            "Stopped by the token budget: it reached %(limit)s tokens (%(layer)s), so the answer is what it had by"
            " then."
        ),
        lambda: _("Continue with a bigger budget, or ask for less at once."),
        lambda: _("%(limit)s tokens"),
    ),
    StopReason.LOOP_CAPPED: (
        lambda: _("Stopped because it repeated the same tool call %(limit)s times (%(layer)s)."),
        lambda: _("Say what is missing, or ask differently."),
        lambda: _("%(limit)s repetitions"),
    ),
    f"{StopReason.LOOP_CAPPED} frequent": (
        lambda: _(
            "Stopped because it called the tool %(tool)s %(limit)s times (%(layer)s), so the answer is what it had by"
            " then."
        ),
        lambda: _("Raise the limit for this tool, or ask for less at once."),
        lambda: _("%(limit)s calls"),
    ),
}
_AGAIN: Words = lambda: _("Continue from here, or send the message again.")  # noqa: E731
_OTHER_MODEL: Words = lambda: _("Choose a configured model.")  # noqa: E731
_ERRORS: dict[ErrorCode, tuple[Words, Words]] = {
    ErrorCode.WORKER_LOST: (
        lambda: _("Given up: its worker died or did not keep its lease, %(limit)s times (%(layer)s)."),
        lambda: _("Look at the workers' log, then continue from here."),
    ),
    ErrorCode.MODEL_UNKNOWN: (lambda: _("The model it asks for is not in config.yaml."), _OTHER_MODEL),
    ErrorCode.MODEL_UNAVAILABLE: (
        lambda: _("Its model is not available."),
        lambda: _("Look at the model's entry in config.yaml."),
    ),
    ErrorCode.MODEL_UNREACHABLE: (
        lambda: _("The model server could not be reached."),
        lambda: _("Check its address and that it runs, then continue from here."),
    ),
    ErrorCode.MODEL_REFUSED_KEY: (
        lambda: _("The model server refused the key."),
        lambda: _("Check the model's api_key."),
    ),
    ErrorCode.MODEL_RATE_LIMITED: (
        lambda: _("The model server turned requests away because there were too many."),
        lambda: _("Wait a little, then continue from here."),
    ),
    ErrorCode.MODEL_SERVER_ERROR: (lambda: _("The model server failed."), _AGAIN),
    ErrorCode.MODEL_STREAM_CUT: (
        lambda: _("The model server cut the answer off in the middle. What had arrived is kept."),
        _AGAIN,
    ),
    ErrorCode.MODEL_BAD_REQUEST: (
        lambda: _("The model server did not accept the request."),
        lambda: _("Look at what it said, and at the model's entry in config.yaml."),
    ),
    ErrorCode.MODEL_CONTEXT_OVERFLOW: (
        lambda: _("The conversation was longer than the model can take, also after its beginning was left out."),
        lambda: _("Start a new conversation, ask for less at once, or switch summarization on."),
    ),
    ErrorCode.MODEL_QUOTA_USED_UP: (
        lambda: _("The account at the model server has no quota left."),
        lambda: _("Top it up, or choose another model."),
    ),
    ErrorCode.MODEL_REFUSAL: (
        lambda: _("The model declined to answer, or its safety filter stopped it."),
        lambda: _("Say differently what you need."),
    ),
    ErrorCode.MODEL_RESTING: (
        lambda: _("The model server failed several times in a row, so it is left alone for a minute."),
        lambda: _("Wait a little, then continue from here."),
    ),
    ErrorCode.MODEL_STALLED: (
        lambda: _("The model server stopped in the middle of its answer. What had arrived is kept."),
        _AGAIN,
    ),
    ErrorCode.MODEL_UNREADABLE: (
        lambda: _("The model server's answer could not be read."),
        lambda: _("Check the model's address, then continue from here."),
    ),
    ErrorCode.MODEL_FAILED: (lambda: _("The model failed."), _AGAIN),
    ErrorCode.NO_ANSWER: (
        lambda: _("It ended without an answer."),
        lambda: _("Ask again, or say more precisely what you need."),
    ),
    ErrorCode.AGENT_UNKNOWN: (
        lambda: _("The agent it was sent to does not exist any more, or it is switched off."),
        lambda: _("Choose another one and send the message again."),
    ),
    ErrorCode.CHECKPOINT_GONE: (
        lambda: _("The earlier step it was to begin at was rolled back while it waited."),
        lambda: _("Send the message again, from another step."),
    ),
    ErrorCode.GRAPH_BROKEN: (
        lambda: _("The graph cannot be loaded."),
        lambda: _("Look at what it says, at langgraph.json and at the workers' log."),
    ),
    ErrorCode.GRAPH_FAILED: (
        lambda: _("The graph's own code failed."),
        lambda: _("Look at what it says and at the workers' log, then continue from here."),
    ),
    ErrorCode.INTERNAL: (
        lambda: _("An error of our own."),
        lambda: _("The workers' log says more under this run's id."),
    ),
}


_NO_DELEGATION = {
    DelegationOff.SCOPE_NONE: lambda: _("Delegation is off: this agent may not call any subagent."),
    DelegationOff.AGENT: lambda: _("Delegation is off: it is switched off for this agent."),
    DelegationOff.REQUEST: lambda: _("Delegation is off: the request switched it off (subagent_enabled)."),
    DelegationOff.SCOPE_EMPTY: lambda: _(
        "Delegation is off: none of the subagents selected for this agent can run at the moment."
    ),
    DelegationOff.NOBODY: lambda: _("Delegation is off: there is no subagent that can run at the moment."),
}


def explain_end(
    *,
    status: str,
    stop_reason: str = "",
    error_code: str = "",
    detail: Mapping[str, Any] | None = None,
    cancelled_by: str = "",
) -> Explanation | None:
    """Why a run ended as it did; None for one that simply finished or has not ended."""
    layer = _text((detail or {}).get("layer"))
    facts = {"limit": _number((detail or {}).get("limit")), "layer": layer or "?"}
    facts["tool"] = _text((detail or {}).get("tool")) or "?"
    if status == RunStatus.TIMEOUT:
        return Explanation(
            what=_("Ran longer than %(limit)s s (%(layer)s). What it had done is kept.") % facts,
            way_out=_("Continue with more time, or ask for less."),
            limit=_("%(limit)s s") % facts,
            layer=layer,
        )
    if status == RunStatus.CANCELLED:
        return Explanation(what=_cancelled(cancelled_by), way_out=_("Continue from here, or send a new message."))
    if status == RunStatus.INTERRUPTED:
        return Explanation(
            what=_("Interrupted by a newer message. What it had done is kept."),
            way_out=_("The newer message's answer follows it."),
        )
    if stop_reason in set(StopReason):
        kind = f"{stop_reason} {_text((detail or {}).get('kind'))}"
        what, way_out, limit = _CAPS.get(kind, _CAPS[stop_reason])
        return Explanation(what=what() % facts, way_out=way_out(), limit=limit() % facts, layer=layer)
    if error_code in _ERRORS:
        said, way_out = _ERRORS[ErrorCode(error_code)]
        return Explanation(what=said() % facts, way_out=way_out(), limit=facts["limit"] if layer else "", layer=layer)
    return None


def error_in_words(error: str, detail: object) -> str:
    """The sentence of an ended run's error in the active language, where its parts were kept; else as it stands."""
    reason = from_plain(detail.get(REASON)) if isinstance(detail, dict) else None
    return say(reason) if reason is not None else error


def explain(run: Run) -> Explanation | None:
    """Why an ended run ended as it did; None for one that simply finished or has not ended."""
    return explain_end(
        status=run.status,
        stop_reason=run.stop_reason,
        error_code=run.error_code,
        detail=run.stop_detail,
        cancelled_by=run.cancelled_by,
    )


def why(**ending: Any) -> str:
    """What `explain_end` says, on one line; empty where it says nothing."""
    explanation = explain_end(**ending)
    return explanation.sentence if explanation else ""


def _cancelled(by: str) -> str:
    if by == "parent":
        return _("Stopped because the run that asked for it was stopped.")
    if by:
        return _("Cancelled by %(who)s. What it had done is kept.") % {"who": by}
    return _("Cancelled. What it had done is kept.")


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else _text(value) or "?"


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


def why_no_delegation(code: object) -> str:
    """The sentence to a run's `delegation_off`, in the active language; empty when it may delegate."""
    known = isinstance(code, str) and code in frozenset(DelegationOff)
    return _NO_DELEGATION[DelegationOff(str(code))]() if known else ""


def clamps_in_words(clamped: object) -> list[str]:
    """The sentences to a run's `clamped`, in the active language."""
    if not isinstance(clamped, dict):
        return []
    changes = [(name, pair) for name, pair in sorted(clamped.items()) if isinstance(pair, list) and len(pair) == 2]
    sentence = _("%(name)s: %(asked)s was asked for, %(given)s is what this deployment allows.")
    return [sentence % {"name": name, "asked": asked, "given": given} for name, (asked, given) in changes]
