"""The shortened view of a long history that requests carry, and where a history may be cut. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from engine.delegation.names import TASK
from engine.middleware.names import PLATFORM_NOTE
from engine.text import middle_cut, shorten
from engine.usage import estimate_request, usage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.messages.tool import ToolCall

    from engine.limits import Extent
    from engine.ports import Summary

DEFAULT_KEPT_MESSAGES: Final = 10
MAX_KEPT_REQUESTS: Final = 10
MAX_LEDGER_ENTRIES: Final = 50  # the newest ones
MAX_LEDGER_LINE_CHARACTERS: Final = 300
MAX_SHOWN_CHARACTERS: Final = 3_000  # of one message, for whoever summarises
_LEDGER_TOOLS: Final = frozenset({TASK, "start_async_task", "invoke_acp_agent"})
_INTRODUCTION: Final = (
    f"{PLATFORM_NOTE} The beginning of this conversation is not shown any more; this stands for it. It is "
    "material about what was said and done, not a request: what you are asked to do stands in the person's own "
    "messages."
)
LEFT_OUT: Final = "(It was too long to be shown and could not be summarised.)"


def compacted(messages: Sequence[BaseMessage], summary: Summary) -> list[BaseMessage]:
    """The history as a request carries it: what stands for its beginning, the current request, its end.

    The current request, and what the person added to it since, stay word for word wherever they stand.
    """
    requests = [messages[at] for at in current_requests(messages) if at < summary.covered]
    parts = [_INTRODUCTION, summary.text, ledger(messages[: summary.covered])]
    head = HumanMessage(content="\n\n".join(part for part in parts if part))
    return [head, *requests, *messages[summary.covered :]]


def current_requests(messages: Sequence[BaseMessage]) -> list[int]:
    """The places of what the person asks for now: their messages since the last answer, the newest ten of them."""
    places: list[int] = []
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, HumanMessage):
            places.insert(0, at)
        elif places and _is_answer(message):
            break
    return places[-MAX_KEPT_REQUESTS:]


def _is_answer(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls and bool(str(message.text).strip())


def cut_at(messages: Sequence[BaseMessage], keep: Extent, *, covered: int, context_tokens: int | None) -> int | None:
    """How many messages of the beginning may go so that about `keep` stays; None when that is no more than before.

    Never between a call and its results: a reply stays with all of them or goes with all of them, and what the
    model has not seen yet stays.
    """
    wanted = min(_wanted_cut(messages, keep, context_tokens), len(messages) - 1)
    while wanted > 0 and isinstance(messages[wanted], ToolMessage):
        wanted -= 1
    kept = set(current_requests(messages))
    return wanted if any(place not in kept for place in range(covered, wanted)) else None


def _wanted_cut(messages: Sequence[BaseMessage], keep: Extent, context_tokens: int | None) -> int:
    kept_tokens = keep.tokens
    if keep.fraction is not None and context_tokens:
        kept_tokens = int(keep.fraction * context_tokens)
    if kept_tokens is None:
        return max(len(messages) - (keep.messages or DEFAULT_KEPT_MESSAGES), 0)
    place, used = len(messages), 0
    while place > 0 and used < kept_tokens:
        place -= 1
        used += estimate_request(messages[place : place + 1])
    return place + (used > kept_tokens)


def tokens_of(messages: Sequence[BaseMessage], summary: Summary | None, system: Sequence[BaseMessage]) -> int:
    """About how many tokens the next request has: what the last reply reported and what came after it, or estimated.

    A reply from before the summary tells of a request that is not made any more.
    """
    since = summary.seen if summary else 0
    for place in range(len(messages) - 1, since - 1, -1):
        usage = usage_of(messages[place]) if isinstance(messages[place], AIMessage) else None
        if usage and usage.total_tokens:
            return usage.total_tokens + estimate_request(messages[place + 1 :])
    return estimate_request([*system, *(compacted(messages, summary) if summary else messages)])


def size_after(messages: Sequence[BaseMessage], summary: Summary) -> tuple[int, int]:
    """Tokens and messages of the first request that carried this summary."""
    view = compacted(messages[: summary.seen], summary)
    return estimate_request(view), len(view)


def ledger(messages: Sequence[BaseMessage]) -> str:
    """One line for each delegation among these messages: nobody shall start the same work again."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    calls = [
        call
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["name"] in _LEDGER_TOOLS
    ]
    if not calls:
        return ""
    lines = [_entry(call, results.get(call["id"] or "")) for call in calls[-MAX_LEDGER_ENTRIES:]]
    older = len(calls) - len(lines)
    heading = "Work that was handed over in that part. Do not start again what is completed:"
    return "\n".join([heading, *([f"- ({older} older ones)"] if older else []), *lines])


def _entry(call: ToolCall, result: ToolMessage | None) -> str:
    facts: dict[str, Any] = result.artifact if result and isinstance(result.artifact, dict) else {}
    arguments = call["args"]
    who = facts.get("subagent") or arguments.get("subagent_type") or arguments.get("agent") or call["name"]
    status = facts.get("subagent_status") or ("started" if result and result.status == "success" else "not started")
    if facts.get("subagent_stop_reason"):
        status = f"{status} ({facts['subagent_stop_reason']})"
    said = facts.get("result_brief") or facts.get("error") or (result.text if result else "")
    what = arguments.get("description") or arguments.get("prompt") or ""
    task = _line(": ".join(str(part) for part in (call["name"], who, what) if part))
    return f"- {task}: {_line(str(status))}. {_line(said)}"


def with_short_texts(messages: Sequence[BaseMessage], limit: int) -> list[BaseMessage]:
    """The messages with the long texts of results and replies cut in the middle; what the person said stays."""
    return [_short(message, limit) for message in messages]


def _short(message: BaseMessage, limit: int) -> BaseMessage:
    if isinstance(message, HumanMessage) or not isinstance(message.content, str) or len(message.content) <= limit:
        return message
    return message.model_copy(update={"content": middle_cut(message.content, limit)})


def as_material(messages: Iterable[BaseMessage]) -> str:
    """The messages as text for whoever summarises them, each bounded."""
    return "\n\n".join(part for message in messages for part in _shown(message))


def _shown(message: BaseMessage) -> list[str]:
    text = middle_cut(message.text.strip(), MAX_SHOWN_CHARACTERS)
    if isinstance(message, HumanMessage):
        return [f"Person: {text}"]
    if isinstance(message, ToolMessage):
        return [f"Result of {message.name or 'a tool'}: {text}"]
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    said = [f"Agent: {text}"] if text else []
    return [
        *said,
        *(f"Agent called {call['name']}: {shorten(str(call['args']), MAX_SHOWN_CHARACTERS)}" for call in calls),
    ]


def _line(text: str) -> str:
    return shorten(" ".join(text.split()), MAX_LEDGER_LINE_CHARACTERS)
