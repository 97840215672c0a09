"""Questions about the messages of a run: what is open, what was said last, what has been used. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from engine.endings import refusal_of
from engine.ports import Counters
from engine.usage import estimate_usage, usage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages.tool import ToolCall

    from engine.errors import ModelFault
    from engine.limits import Limits


def settle(messages: Sequence[BaseMessage]) -> tuple[ToolCall, ...]:
    """The calls of the last reply that have no result, in order: what a lost worker left in flight."""
    answered = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return tuple(call for call in message.tool_calls if call["id"] not in answered)
        elif isinstance(message, HumanMessage):
            return ()
    return ()


def is_answered(messages: Sequence[BaseMessage]) -> bool:
    """Whether the last message is a reply that asks for nothing more: then there is nothing left to drive."""
    return bool(messages) and isinstance(messages[-1], AIMessage) and not messages[-1].tool_calls


def final_text(messages: Sequence[BaseMessage]) -> str:
    """The text of the last reply, "" when it says nothing: no reply, only reasoning, or only blanks."""
    reply = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return _said(reply) if reply else ""


def refusal_of_last(messages: Sequence[BaseMessage]) -> ModelFault | None:
    """Why the last reply is no answer although it ended: its model declined, or a safety filter stopped it."""
    reply = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return refusal_of(reply) if reply else None


def partial_text(messages: Sequence[BaseMessage]) -> str:
    """What a run that ended early has to show: the last reply since the last request that says anything."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return ""
        if isinstance(message, AIMessage) and _said(message):
            return _said(message)
    return ""


def counters_of(
    own: Sequence[BaseMessage], *, before: Sequence[BaseMessage] = (), limits: Limits | None = None
) -> Counters:
    """Rebuild what the guards of one run remember from `own`, the messages this run has stored so far.

    `before` is the part of the thread that each of its model calls saw first; it only matters where a
    provider reported no usage, so that the estimate is of the whole request. With `limits` also what was warned
    of, what is to be warned of in the next request, and whether a loop ended the run.
    """
    counters = Counters()
    seen = list(before)
    delegated = 0
    for message in own:
        if isinstance(message, AIMessage):
            _note_warning(counters, delegated, limits)
            usage = usage_of(message) or estimate_usage(seen, message)
            counters.model_calls += 1
            counters.tokens += usage.total_tokens or 0
            counters.tokens_estimated |= usage.estimated
            if limits and limits.loops:
                calls = [(call["name"], call["args"]) for call in message.tool_calls]
                counters.take_in(counters.loops.note(calls, limits.loops))
        elif isinstance(message, ToolMessage) and isinstance(message.artifact, dict):
            counters.children_started += bool(message.artifact.get("child_run_id"))
            delegated += (message.artifact.get("usage") or {}).get("total_tokens", 0)
        if not isinstance(message, SystemMessage):
            seen.append(message)
    return counters


def _note_warning(counters: Counters, delegated: int, limits: Limits | None) -> None:
    """A reply was made under a warning when the budget had run low before it."""
    if limits is None:
        return
    used = ((limits.tokens, counters.tokens), (limits.tree_tokens, counters.tokens + delegated))
    counters.token_warning_given |= any(
        limit is not None and tokens >= limit.warn_threshold * limit.max_tokens for limit, tokens in used
    )


def _said(message: AIMessage) -> str:
    text = str(message.text)
    return text if text.strip() else ""
