"""What came of a delegation: the text that the lead's model reads, and the facts for everybody else.

Nobody reads a status out of the text. Does not import LangChain: the platform answers calls with it too.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from engine.stop import StopReason, SubagentStatus
from engine.text import clean, middle_cut

if TYPE_CHECKING:
    from engine.ports import ChildResult, Usage

MAX_RESULT_CHARACTERS: Final = 24_000
MAX_BRIEF_CHARACTERS: Final = 2_000

_CAPPED: Final = {
    StopReason.TOKEN_CAPPED: "its token budget",
    StopReason.TURN_CAPPED: "its turn limit",
    StopReason.LOOP_CAPPED: "the guard against repeated tool calls",
}
_NOT_COMPLETED: Final = {
    SubagentStatus.FAILED: "The subagent failed.",
    SubagentStatus.CANCELLED: "The subagent was cancelled.",
    SubagentStatus.TIMED_OUT: "The subagent ran out of time.",
}


def not_answered(sentence: str, *, status: SubagentStatus = SubagentStatus.FAILED, **child: str) -> dict[str, str]:
    """The facts of a `task` call that has no outcome of its own: refused, above a limit, or left by its lead.

    `child`: `child_run_id` and `child_thread_id` where one had been started.
    """
    return {"subagent_status": status.value, **child, "error": middle_cut(clean(sentence), MAX_BRIEF_CHARACTERS)}


def text_of(result: ChildResult) -> str:
    """The result as the model reads it, bounded, with a mark where it was cut."""
    text = clean(result.text).strip()
    if len(text) > MAX_RESULT_CHARACTERS:
        text = (
            f"{middle_cut(text, MAX_RESULT_CHARACTERS)}\n\n[This result was shortened; the whole text of "
            f"{len(text)} characters is kept with the subagent's run {result.run_id or ''}.]"
        )
    capped = f"[Stopped early by {_CAPPED[result.stop_reason]}.]" if result.stop_reason else ""
    status = _NOT_COMPLETED.get(result.status, "")
    if result.run_id is None and text:
        status = ""  # a refusal is its own sentence: no subagent was there to fail
    return "\n".join(part for part in (status, capped, text) if part) or "(The subagent gave no answer.)"


def facts_of(result: ChildResult) -> dict[str, Any]:
    """`subagent_status` (completed, failed, cancelled, timed_out), `subagent_stop_reason` when a cap ended it,
    `subagent`, `child_run_id`, `child_thread_id`, `model`, `usage` {input_tokens, output_tokens, cached_tokens,
    total_tokens, estimated}, `result_brief` (≤ 2,000 characters), `result_sha256` (64 hex digits, of the whole text)
    and `error`. What is unknown is absent. Source: product.md §5.
    """
    text = clean(result.text)
    brief = middle_cut(text.strip(), MAX_BRIEF_CHARACTERS)
    completed = result.status is SubagentStatus.COMPLETED
    facts: dict[str, Any] = {
        "subagent_status": result.status.value,
        "subagent_stop_reason": result.stop_reason.value if result.stop_reason else None,
        "subagent": clean(result.subagent),
        "child_run_id": result.run_id,
        "child_thread_id": result.thread_id,
        "model": clean(result.model),
        "usage": _usage(result.usage),
        "result_brief": brief if completed else None,
        "result_sha256": hashlib.sha256(text.encode()).hexdigest() if completed and brief else None,
        "error": None if completed else brief,
    }
    return {name: value for name, value in facts.items() if value}


def _usage(usage: Usage | None) -> dict[str, int | bool] | None:
    if usage is None or usage.total_tokens is None:
        return None
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "total_tokens": usage.total_tokens,
    }
    known: dict[str, int | bool] = {name: count for name, count in counts.items() if count is not None}
    return known | {"estimated": True} if usage.estimated else known
