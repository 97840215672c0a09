"""The transcript's rows as wire dictionaries, and back. LangChain's classes are the engine's business.

A wire message is {"type": "human"|"ai"|"tool", "id", "content", …}; see engine.wire.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import orjson
from django.db import connection

from engine.delegation.facts import not_answered
from engine.delegation.names import TASK
from engine.stop import SubagentStatus
from engine.text import clean_json
from runs.rows import as_uuid, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

WireMessage = dict[str, Any]
_SUSPICIOUS = ("\\ud", "\\uD", "NaN", "Infinity")  # in a row of ours these are words of somebody's text at most
_NEWEST = 4  # messages among which the last answer nearly always is
_ALL = 2**31 - 1
_LAST_REPLY = 20  # messages that hold the last reply and its results


def to_row(message: WireMessage) -> str:
    """One message as stored. Text that no database or socket could take (NUL, lone surrogates) is replaced."""
    return to_json(message)


def to_json(value: object) -> str:
    """JSON of what people and models wrote. Text that no database or socket could take is replaced."""
    storable = clean_json(value)
    try:
        return orjson.dumps(storable).decode()
    except TypeError:  # whole numbers past 64 bits, keys that are no text
        return json.dumps(storable, ensure_ascii=False, default=str)


def from_json(text: str | bytes) -> Any:
    """Read a stored row. Raises ValueError for what is no JSON.

    What this house writes is always clean; a row that came in another way may hold halves of characters or NaN,
    which are replaced rather than hiding the row and all behind it.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return clean_json(json.loads(text))


def readable(text: str) -> str:
    """A stored row as every reader of JSON takes it; the row itself, unless it came from elsewhere. See `from_json`."""
    if not any(mark in text for mark in _SUSPICIOUS):
        return text
    return to_json(from_json(text))


NOT_ANSWERED = "Not answered: the run was stopped before this call had a result."


def open_calls(messages: Sequence[WireMessage]) -> list[dict[str, Any]]:
    """The calls of the last reply that have no result, in order. A person's message closes what came before it."""
    answered = set()
    for message in reversed(messages):
        if message.get("type") == "tool":
            answered.add(message.get("tool_call_id"))
        elif message.get("type") == "ai":
            return [call for call in message.get("tool_calls") or () if call.get("id") not in answered]
        elif message.get("type") == "human":
            return []
    return []


def closing_answers(
    messages: Sequence[WireMessage], children: Mapping[str, tuple[UUID, UUID]] | None = None
) -> list[WireMessage]:
    """One result for each open call: every call gets exactly one, whatever happened to its run.

    `children`: (run, thread) of the subagents that calls had started, by call id.
    """
    return [_closing_answer(call, (children or {}).get(call["id"])) for call in open_calls(messages)]


def _closing_answer(call: Mapping[str, Any], child: tuple[UUID, UUID] | None) -> WireMessage:
    answer: WireMessage = {
        "type": "tool",
        "tool_call_id": call["id"],
        "name": call["name"],
        "content": NOT_ANSWERED,
        "status": "error",
    }
    if call["name"] == TASK:
        started = {"child_run_id": str(child[0]), "child_thread_id": str(child[1])} if child else {}
        answer["artifact"] = not_answered(NOT_ANSWERED, status=SubagentStatus.CANCELLED, **started)
    return answer


def load(thread_ids: Iterable[UUID]) -> dict[UUID, list[WireMessage]]:
    """The transcripts of threads, oldest message first."""
    return ask(thread_ids)()


def ask(thread_ids: Iterable[UUID]) -> Callable[[], dict[UUID, list[WireMessage]]]:
    """`load`, whose answer may be read later: see rows.in_one_go."""
    wanted = [key_of(thread_id) for thread_id in thread_ids]
    if not wanted:
        return lambda: defaultdict(list)
    places = ", ".join(["%s"] * len(wanted))
    cursor = connection.cursor()
    cursor.execute(
        f"SELECT thread_id, data FROM runs_message WHERE thread_id IN ({places}) AND left_at IS NULL"
        " ORDER BY thread_id, seq",
        wanted,
    )

    def answer() -> dict[UUID, list[WireMessage]]:
        found: dict[UUID, list[WireMessage]] = defaultdict(list)
        with cursor:
            for thread_id, text in cursor.fetchall():
                found[as_uuid(thread_id)].append(from_json(text))
        return found

    return answer


def text_of(message: WireMessage) -> str:
    """The words of a message, whatever blocks it is made of."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else ()
    parts = (block.get("text", "") if isinstance(block, dict) else block for block in blocks)
    return "".join(part for part in parts if isinstance(part, str))


def last_answer_of(thread_id: UUID) -> str:
    """The last words an agent said on a thread; looks at the newest rows first."""
    for limit in (_NEWEST, _ALL):
        if answer := last_answer(reversed(_newest(thread_id, limit))):
            return answer
    return ""


def newest(thread_id: UUID) -> list[WireMessage]:
    """The thread's last messages, oldest first: those of its last reply, its calls' results included, and some more."""
    return _newest(thread_id, _LAST_REPLY)[::-1]


def stopped_tools(messages: Sequence[WireMessage]) -> list[str]:
    """The tools that were at work when a run was stopped: its calls without a result, or with one that says so."""
    names = [str(call.get("name", "")) for call in open_calls(messages)]
    for message in reversed(messages):
        if message.get("type") != "tool" or message.get("content") != NOT_ANSWERED:
            break
        names.insert(0, str(message.get("name", "")))
    return names


def _newest(thread_id: UUID, limit: int) -> list[WireMessage]:
    statement = "SELECT data FROM runs_message WHERE thread_id = %s AND left_at IS NULL ORDER BY seq DESC LIMIT %s"
    with connection.cursor() as cursor:
        cursor.execute(statement, [key_of(thread_id), limit])
        return [from_json(text) for (text,) in cursor.fetchall()]


def last_answer(messages: Iterable[WireMessage]) -> str:
    """The last words an agent said; empty when it said none."""
    answer = ""
    for message in messages:
        if message.get("type") == "ai" and (text := text_of(message).strip()):
            answer = text
    return answer
