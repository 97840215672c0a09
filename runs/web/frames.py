"""The log's rows as the frames a page gets: one JSON object per event, prose as finished HTML.

A frame is {"seq", "type", "at", "run_id", …payload}. A page needs nothing else, and a frame it does not know
it may skip: `seq` alone tells where to resume.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.utils import translation

from engine.text import shorten
from runs.event_types import EventType
from runs.explain import clamps_in_words, error_in_words, why, why_no_delegation
from runs.raising import offered
from runs.statuses import RunStatus
from runs.transcript import from_json, text_of
from runs.web.markdown import to_html
from runs.web.streaming import StreamedReply

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

Frame = dict[str, Any]

_MADE_BY: Final = {"continue": "continues", "task": "task"}  # marks of what the platform wrote in a person's place
MAX_RESULT_CHARACTERS: Final = 2_000
MAX_ARGUMENT_CHARACTERS: Final = 200
_SALIENT: Final = ("path", "file_path", "command", "query", "pattern", "url", "description", "name", "prompt")


class Row(Protocol):
    """What the relay hands over; `data` is a JSON object."""

    @property
    def seq(self) -> int: ...
    @property
    def run_id(self) -> UUID: ...
    @property
    def type(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def data(self) -> str: ...


@dataclass(slots=True)
class _Pending:
    """A patch that is due: the newest event it covers, and when it may be shown."""

    seq: int
    at: str
    due: float


class Feed:
    """What one subscriber has been shown. Not for use from two threads at once.

    Deltas are held back so that the open block is rendered at most five times a second; the first delta of a
    message never is. Times are seconds of a monotonic clock, passed in.
    """

    def __init__(self, language: str = "en") -> None:
        self._language = language  # why a run was stopped is said in the reader's language, whoever stored it
        self._replies: dict[str, StreamedReply] = {}
        self._run_of: dict[str, str] = {}
        self._pending: dict[str, _Pending] = {}

    def take(self, rows: Iterable[Row], *, now: float) -> list[Frame]:
        """The frames that `rows` ask for at once, in order. See `due` for those that come later."""
        frames: list[Frame] = []
        for row in rows:
            payload = _payload(row.data)
            if row.type == EventType.DELTA:
                self._push(row, payload, now)
                continue
            frames.extend(self._superseding(row, payload, now))
            frames.append(_frame(row, payload, self._language))
        frames.extend(self.flush(now=now))
        return frames

    @property
    def due(self) -> float | None:
        """When `flush` should be called next; None while nothing is held back."""
        return min((pending.due for pending in self._pending.values()), default=None)

    def flush(self, *, now: float) -> list[Frame]:
        """The patches whose time has come."""
        ready = [key for key, pending in self._pending.items() if pending.due <= now]
        return [self._patch(key, now) for key in ready]

    def _push(self, row: Row, payload: Mapping[str, Any], now: float) -> None:
        key, text = str(payload.get("id", "")), payload.get("text")
        if not key or not isinstance(text, str):
            return
        reply = self._replies.get(key)
        if reply is None or payload.get("restarts"):
            reply = self._replies[key] = StreamedReply()
            self._run_of[key] = str(row.run_id)
            due = now
        else:
            # On a common grid, so that subscribers of one thread ask for the same text and share its rendering.
            due = math.floor(now / reply.interval_seconds + 1) * reply.interval_seconds
        reply.push(text)
        pending = self._pending.setdefault(key, _Pending(seq=row.seq, at=row.at.isoformat(), due=due))
        pending.seq, pending.at = row.seq, row.at.isoformat()

    def _superseding(self, row: Row, payload: Mapping[str, Any], now: float) -> list[Frame]:
        """What must be shown before `row`: the rest of the replies its run leaves unfinished."""
        if row.type == EventType.MESSAGE:
            self._forget(str(payload.get("id", "")))
            return []
        if row.type == EventType.RUN_STARTED:
            # What a lost worker was writing will be written again under another id.
            for key in [key for key, run_id in self._run_of.items() if run_id == str(row.run_id)]:
                self._forget(key)
            return []
        if row.type != EventType.RUN_ENDED:
            return []
        left = [key for key, run_id in self._run_of.items() if run_id == str(row.run_id)]
        frames = [self._patch(key, now) for key in left if key in self._pending]
        for key in left:
            self._forget(key)
        return frames

    def _patch(self, key: str, now: float) -> Frame:
        pending = self._pending.pop(key)
        patch = self._replies[key].patch()
        return {
            "seq": pending.seq,
            "type": EventType.DELTA.value,
            "at": pending.at,
            "run_id": self._run_of[key],
            "id": key,
            "first_block": patch.first_block,
            "blocks": list(patch.blocks),
            "open_html": patch.open_html,
        }

    def _forget(self, key: str) -> None:
        self._replies.pop(key, None)
        self._run_of.pop(key, None)
        self._pending.pop(key, None)


def salient_argument(arguments: object) -> str:
    """The one argument of a tool call that tells a reader most, on one line; empty when there is none."""
    if not isinstance(arguments, Mapping):
        return ""
    named = (arguments[name] for name in _SALIENT if name in arguments)
    for value in (*named, *arguments.values()):
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return shorten(" ".join(str(value)[:2_000].split()), MAX_ARGUMENT_CHARACTERS)
    return ""


def _payload(text: str) -> dict[str, Any]:
    try:
        payload = from_json(text)
    except ValueError:
        return {}
    return payload if isinstance(payload, dict) else {}


def _frame(row: Row, payload: dict[str, Any], language: str) -> Frame:
    if row.type == EventType.MESSAGE:
        payload = _message(payload)
    elif row.type in {EventType.TASK_ENDED, EventType.RUN_ENDED}:
        payload = _ending(payload, language)
    elif row.type == EventType.RUN_NOTED:
        payload = _noted(payload, language)
    return {
        **payload,
        "seq": row.seq,
        "type": str(row.type),
        "at": row.at.isoformat(),
        "run_id": str(row.run_id),
    }


def _noted(payload: Mapping[str, Any], language: str) -> dict[str, Any]:
    with translation.override(language):
        lines = [why_no_delegation(payload.get("delegation_off")), *clamps_in_words(payload.get("clamped"))]
    return {"lines": [line for line in lines if line]}


def _ending(payload: dict[str, Any], language: str) -> dict[str, Any]:
    if isinstance(payload.get("result"), str):
        payload["html"] = to_html(payload["result"])
    detail = payload.get("detail")
    with translation.override(language):
        payload["why"] = why(
            status=str(payload.get("status", "")),
            stop_reason=str(payload.get("stop_reason", "")),
            error_code=str(payload.get("error_code", "")),
            detail=detail if isinstance(detail, dict) else None,
            cancelled_by=str(payload.get("cancelled_by", "")),
        )
        payload["error"] = error_in_words(str(payload.get("error", "")), detail)
    payload["offer"] = _offer(payload)
    return payload


def _offer(payload: Mapping[str, Any]) -> dict[str, int] | None:
    """The limits with which the page offers to go on from here; {} to go on as before, None where nothing is left."""
    status, stop_reason = str(payload.get("status", "")), str(payload.get("stop_reason", ""))
    if status in {"", RunStatus.SUCCESS, RunStatus.INTERRUPTED} and not stop_reason:
        return None
    return offered(status=status, stop_reason=stop_reason, detail=payload.get("detail"))


def _message(wire: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of a message. Its `type` becomes `role`, because a frame's type is its event's."""
    role, text = str(wire.get("type", "")), text_of(dict(wire))
    shown: dict[str, Any] = {"id": str(wire.get("id", "")), "role": role}
    if role == "ai":
        shown["html"] = to_html(text)
        shown["calls"] = [_call(call) for call in _dicts(wire.get("tool_calls"))]
        shown["calls"] += [_call(call) for call in _dicts(wire.get("invalid_tool_calls"))]
    elif role == "tool":
        shown["call"] = str(wire.get("tool_call_id", ""))
        shown["tool"] = str(wire.get("name") or "")
        shown["text"] = shorten(text, MAX_RESULT_CHARACTERS)
        shown["failed"] = wire.get("status") == "error"
    else:
        shown["text"] = text
        shown["kind"] = next((name for name, mark in _MADE_BY.items() if wire.get(mark)), "")
    return shown


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _call(call: Mapping[str, Any]) -> dict[str, str]:
    return {
        "id": str(call.get("id") or ""),
        "name": str(call.get("name") or ""),
        "argument": salient_argument(call.get("args")),
    }
