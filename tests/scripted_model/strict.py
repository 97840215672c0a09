"""What the strictest provider would answer 400 to, found in a request of the OpenAI wire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.scripted_model.calls import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Everything wrong with a history; [] when every provider takes it."""
    found = [f"message {number}: {fault}" for number, message in enumerate(messages) for fault in _of(message)]
    if any(message.get("role") == "system" for message in messages[1:]):
        found.append("a system message that is not the first")
    body = [message for message in messages if message.get("role") != "system"]
    if not body or body[0].get("role") != "user":
        found.append("a conversation that the person did not begin")
    return [*found, *_of_calls(messages)]


def _of(message: Mapping[str, Any]) -> Iterator[str]:
    role, calls = message.get("role"), message.get("tool_calls")
    if role not in {"system", "user", "assistant", "tool"}:
        yield f"the role {role!r}"
    if not text_of(message.get("content")).strip() and not calls:
        yield f"no content in a message of {role}"
    for call in calls or ():
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            yield "arguments that are no JSON object"


def _of_calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"message {number}: a result without its call"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"message {number}: calls without a result before it: {', '.join(waiting)}"
        waiting = [call.get("id") or "" for call in message.get("tool_calls") or ()]
        if "" in waiting or seen & set(waiting) or len(set(waiting)) != len(waiting):
            yield f"message {number}: call ids that are empty or not new"
        seen |= set(waiting)
    if waiting:
        yield f"at the end: calls without a result: {', '.join(waiting)}"
