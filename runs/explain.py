"""Why was this stopped: one sentence that names the limit, the setting that set it, and one way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from runs.statuses import DelegationOff, ErrorCode, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

_CAPS = {
    "turn_capped": lambda: _(
        "Stopped by the turn limit: it used all %(limit)s model calls (%(layer)s), so the answer is what it had by"
        " then. Raise max_turns, or ask for less at once."
    ),
    "token_capped": lambda: _(
        "Stopped by the token budget: it reached %(limit)s tokens (%(layer)s), so the answer is what it had by then."
        " Raise the budget, or ask for less at once."
    ),
    "loop_capped": lambda: _(
        "Stopped because it repeated the same tool call %(limit)s times (%(layer)s). Say what is missing, or ask"
        " differently."
    ),
    "loop_capped frequent": lambda: _(
        "Stopped because it called the tool %(tool)s %(limit)s times (%(layer)s), so the answer is what it had by"
        " then. Raise the limit for this tool, or ask for less at once."
    ),
}
_ERRORS = {
    ErrorCode.WORKER_LOST: lambda: _(
        "Given up: the worker that ran it was lost %(limit)s times. Look at the workers' log, then send the message"
        " again."
    ),
    ErrorCode.MODEL_UNKNOWN: lambda: _("The model it asks for is not in config.yaml. Choose a configured model."),
    ErrorCode.MODEL_UNAVAILABLE: lambda: _("Its model is not available. Look at the model's entry in config.yaml."),
    ErrorCode.MODEL_UNREACHABLE: lambda: _(
        "The model server could not be reached. Check its address and that it runs, then send the message again."
    ),
    ErrorCode.MODEL_REFUSED_KEY: lambda: _("The model server refused the key. Check the model's api_key."),
    ErrorCode.MODEL_RATE_LIMITED: lambda: _(
        "The model server turned requests away because there were too many. Wait a little, then send the message again."
    ),
    ErrorCode.MODEL_SERVER_ERROR: lambda: _("The model server failed. Send the message again."),
    ErrorCode.MODEL_STREAM_CUT: lambda: _(
        "The model server cut the answer off in the middle. What had arrived is kept; send the message again."
    ),
    ErrorCode.MODEL_BAD_REQUEST: lambda: _("The model server did not accept the request."),
    ErrorCode.MODEL_CONTEXT_OVERFLOW: lambda: _(
        "The conversation was longer than the model can take, also after its beginning was left out. Start a new"
        " conversation, ask for less at once, or switch summarization on."
    ),
    ErrorCode.MODEL_QUOTA_USED_UP: lambda: _(
        "The account at the model server has no quota left. Top it up, or choose another model."
    ),
    ErrorCode.MODEL_REFUSAL: lambda: _(
        "The model declined to answer, or its safety filter stopped it. Say differently what you need."
    ),
    ErrorCode.MODEL_RESTING: lambda: _(
        "The model server failed several times in a row, so it is left alone for a minute. Wait a little, then send"
        " the message again."
    ),
    ErrorCode.MODEL_STALLED: lambda: _(
        "The model server stopped in the middle of its answer. What had arrived is kept; send the message again."
    ),
    ErrorCode.MODEL_UNREADABLE: lambda: _(
        "The model server's answer could not be read. Check the model's address, then send the message again."
    ),
    ErrorCode.MODEL_FAILED: lambda: _("The model failed."),
    ErrorCode.NO_ANSWER: lambda: _("It ended without an answer. Ask again, or say more precisely what you need."),
    ErrorCode.AGENT_UNKNOWN: lambda: _(
        "The agent it was sent to does not exist any more, or it is switched off. Choose another one and send the"
        " message again."
    ),
    ErrorCode.INTERNAL: lambda: _("An error of our own. The workers' log says more under this run's id."),
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


def why(
    *,
    status: str,
    stop_reason: str = "",
    error_code: str = "",
    detail: Mapping[str, Any] | None = None,
    cancelled_by: str = "",
) -> str:
    """The sentence in the active language; empty for a run that simply finished or has not ended."""
    facts = {name: (detail or {}).get(name, "?") for name in ("limit", "layer", "tool")}
    facts["limit"] = f"{facts['limit']:,}" if isinstance(facts["limit"], int) else facts["limit"]
    if status == RunStatus.TIMEOUT:
        return (
            _("Ran longer than %(limit)s s (%(layer)s). What it had done is kept; raise the timeout or ask for less.")
            % facts
        )
    if status == RunStatus.CANCELLED:
        return _cancelled(cancelled_by)
    if status == RunStatus.INTERRUPTED:
        return _("Interrupted by a newer message. What it had done is kept.")
    if stop_reason in _CAPS:
        kind = f"{stop_reason} {(detail or {}).get('kind', '')}"
        return _CAPS.get(kind, _CAPS[stop_reason])() % facts
    if error_code in _ERRORS:
        return _ERRORS[ErrorCode(error_code)]() % facts
    return ""


def _cancelled(by: str) -> str:
    if by == "parent":
        return _("Stopped because the run that asked for it was stopped.")
    if by:
        return _("Cancelled by %(who)s. What it had done is kept.") % {"who": by}
    return _("Cancelled. What it had done is kept.")
