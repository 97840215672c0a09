"""Before every model call the history is made valid, however it came to be what it is.

Providers refuse a history with an open call, an orphaned or doubled result, or a system message in the
middle, and would refuse every later request of the thread with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, tool_call

from engine.middleware.reply import Guard, Handler, Request, Response, with_calls
from engine.text import clean_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OUTCOME_UNKNOWN: Final = "This call was interrupted; whether it had an effect is unknown."
NOT_VALID_JSON: Final = "This call was not run: its arguments are not valid JSON."
NO_OUTPUT: Final = "(no output)"
EMPTY_REQUEST: Final = "(empty message)"
BEGINNING_CUT: Final = "(The beginning of this conversation is not shown.)"


class HistoryRepairMiddleware(Guard):
    """Hand on a valid history; the stored one stays as it is."""

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        system = [request.system_message] if request.system_message else []
        messages: list[Any] = repair([*system, *request.messages])
        if messages and isinstance(messages[0], SystemMessage):
            return await handler(request.override(system_message=messages[0], messages=messages[1:]))
        return await handler(request.override(system_message=None, messages=messages))


def repair(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the history as every provider takes it; what was valid stays the very same object.

    At most one system message, leading; then a message of the person; every reply's calls with ids of their
    own and arguments that are objects; each call followed at once by exactly one result with its id, in the
    order of the calls; no other results; no empty messages. A system message elsewhere becomes one of the
    person's: its words are not lost and gain no authority. Repairing twice changes nothing more.
    """
    results = _Results(messages)
    repaired: list[BaseMessage] = []
    taken: set[str] = set()
    for position, message in enumerate(messages):
        if isinstance(message, AIMessage):
            repaired += _reply_with_results(message, position, results, taken)
        elif isinstance(message, SystemMessage) and position > 0:
            repaired.append(_not_empty(HumanMessage(content=message.content, id=message.id)))
        elif not isinstance(message, ToolMessage):
            repaired.append(_not_empty(message))
    first = 1 if repaired and isinstance(repaired[0], SystemMessage) else 0
    if len(repaired) > first and not isinstance(repaired[first], HumanMessage):
        repaired.insert(first, HumanMessage(content=BEGINNING_CUT))
    return repaired


class _Results:
    """The results of a history, each to be taken once by the call it belongs to."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._by_id: dict[str, list[tuple[int, ToolMessage]]] = {}
        self._replies: dict[str, list[int]] = {}
        for position, message in enumerate(messages):
            if isinstance(message, ToolMessage):
                self._by_id.setdefault(message.tool_call_id, []).append((position, message))
            elif isinstance(message, AIMessage):
                for call_id in {call["id"] or "" for call in (*message.tool_calls, *message.invalid_tool_calls)}:
                    self._replies.setdefault(call_id, []).append(position)

    def take(self, call_id: str, position: int) -> ToolMessage | None:
        """The first result after the reply at `position` and before the next reply that uses the same id."""
        end = next((other for other in self._replies.get(call_id, ()) if other > position), None)
        waiting = self._by_id.get(call_id, [])
        for index, (found_at, message) in enumerate(waiting):
            if found_at > position and (end is None or found_at < end):
                del waiting[index]
                return message
        return None


def _reply_with_results(reply: AIMessage, position: int, results: _Results, taken: set[str]) -> Iterator[BaseMessage]:
    if not reply.tool_calls and not reply.invalid_tool_calls:
        if str(reply.text).strip():
            yield reply
        return
    calls: list[ToolCall] = []
    answers: list[ToolMessage] = []
    for call, default in _all_calls(reply):
        call_id = _free_id(call["id"], taken)
        answer = results.take(call["id"] or "", position)
        call = _sound(call, call_id)
        calls.append(call)
        answers.append(_result_of(call, answer, default))
    yield reply if calls == reply.tool_calls and not reply.invalid_tool_calls else with_calls(reply, calls)
    yield from answers


def _all_calls(reply: AIMessage) -> Iterator[tuple[ToolCall, str]]:
    """Each call with what its result says when there is none."""
    for call in reply.tool_calls:
        yield call, OUTCOME_UNKNOWN
    for invalid in reply.invalid_tool_calls:
        yield tool_call(name=invalid["name"] or "unnamed", args={}, id=invalid["id"]), NOT_VALID_JSON


def _free_id(call_id: str | None, taken: set[str]) -> str:
    free = call_id or "call"
    number = 2
    while free in taken or not free.strip():
        free = f"{call_id or 'call'}_{number}"
        number += 1
    taken.add(free)
    return free


def _sound(call: ToolCall, call_id: str) -> ToolCall:
    arguments = clean_json(call["args"]) if isinstance(call["args"], dict) else {}
    if call_id == call["id"] and arguments == call["args"] and call["name"]:
        return call
    return tool_call(name=call["name"] or "unnamed", args=dict(arguments), id=call_id)  # type: ignore[call-overload]


def _result_of(call: ToolCall, answer: ToolMessage | None, default: str) -> ToolMessage:
    call_id = call["id"] or ""
    if answer is None:
        return ToolMessage(content=default, tool_call_id=call_id, name=call["name"], status="error")
    changes: dict[str, object] = {}
    if answer.tool_call_id != call_id:
        changes["tool_call_id"] = call_id
    if not answer.name:
        changes["name"] = call["name"]
    if not answer.content:
        changes["content"] = NO_OUTPUT
    return answer.model_copy(update=changes) if changes else answer


def _not_empty(message: BaseMessage) -> BaseMessage:
    content = message.content
    empty = not content.strip() if isinstance(content, str) else not content
    if not empty or isinstance(message, SystemMessage):
        return message
    return message.model_copy(update={"content": EMPTY_REQUEST})
