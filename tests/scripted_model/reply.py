"""What the server answers to one request, and how a script's step spells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ending(StrEnum):
    """How an answer stops before its end."""

    CUT = "cut"
    CLOSE = "close"
    STALL = "stall"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call of a reply. `call_id` None: the server makes one that differs in every turn."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, with everything that can go wrong on its way.

    A streamed answer is a row of *deltas*: the pieces of text, then those of the tool calls.
    Fields that name a place (`cut_after`, `close_after`, `stall_after`, `error_after`, `gate_after`) count deltas.
    """

    text: str | None = None  # None: "ok:<script id>" for a script that says nothing else
    chunks: tuple[str, ...] | None = None  # exactly these pieces of text
    tokens: int | None = None  # that many numbered tokens ("t0 t1 t2 …"), so that order can be checked
    rate_per_second: float = 0.0  # deltas per second; 0: as fast as the socket takes them
    sleep_seconds: float = 0.0  # before the first byte
    calls: tuple[ToolCall, ...] = ()
    fail_statuses: tuple[int, ...] = ()  # answers of the first attempts at this reply
    fail_message: str = "scripted failure"  # what those answers say
    fail_code: str = ""  # their error's code; empty: the status
    retry_after_seconds: float | None = None  # what those answers ask for; None: to come back at once
    cut_after: int | None = None  # the connection is aborted there
    close_after: int | None = None  # the answer ends there: no finish_reason, no [DONE]
    stall_after: int | None = None  # nothing more comes, the connection stays open
    error_after: int | None = None  # an error object comes instead of the rest
    hang: bool = False  # not one byte comes
    garbage: bool = False  # the body is not the protocol at all
    malformed: str | bool = False  # True: arguments that nothing can repair; text: literally these arguments
    split: bool = False  # arguments in pieces of two characters, bytes on the wire in pieces of seven
    duplicate_ids: bool = False  # every call, of this turn and of all turns, has one and the same id
    usage: Sequence[int] | Mapping[str, object] | None = None  # (prompt, completion), or the wire's object
    reports_usage: bool = True
    refusal: str | None = None  # said where OpenAI's models say that they decline
    reasoning: str | None = None  # streamed before the text, where it is no part of the answer
    finish_reason: str | None = None  # None: "tool_calls" or "stop"
    gate: str | None = None  # waits until this gate is opened, before the first byte or
    gate_after: int | None = None  # … there

    @property
    def early_end(self) -> tuple[Ending, int] | None:
        """How and after how many deltas the answer stops without having been finished."""
        for ending, place in (
            (Ending.CUT, self.cut_after),
            (Ending.CLOSE, self.close_after),
            (Ending.STALL, self.stall_after),
            (Ending.ERROR, self.error_after),
        ):
            if place is not None:
                return ending, place
        return None


STEP_FIELDS = {
    "text": "text",
    "chunks": "chunks",
    "tokens": "tokens",
    "rate": "rate_per_second",
    "sleep": "sleep_seconds",
    "calls": "calls",
    "fail": "fail_statuses",
    "fail_message": "fail_message",
    "fail_code": "fail_code",
    "retry_after": "retry_after_seconds",
    "cut": "cut_after",
    "close": "close_after",
    "stall": "stall_after",
    "error": "error_after",
    "refusal": "refusal",
    "reasoning": "reasoning",
    "hang": "hang",
    "garbage": "garbage",
    "malformed": "malformed",
    "split": "split",
    "duplicate_ids": "duplicate_ids",
    "usage": "usage",
    "no_usage": "reports_usage",
    "finish": "finish_reason",
    "gate": "gate",
    "gate_after": "gate_after",
}


class ScriptError(ValueError):
    """A script that cannot be played; its sentence goes back as a 400."""


def reply_from_step(step: Mapping[str, Any]) -> Reply:
    """Read one step of a script. Raises ScriptError for a field this server does not know."""
    unknown = sorted(set(step) - set(STEP_FIELDS))
    if unknown:
        raise ScriptError(f"unknown field in the script's step: {', '.join(unknown)}")
    values: dict[str, Any] = {STEP_FIELDS[name]: value for name, value in step.items()}
    if "reports_usage" in values:
        values["reports_usage"] = not values["reports_usage"]
    for name in ("chunks", "fail_statuses"):
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    values["calls"] = tuple(_tool_call(call) for call in step.get("calls") or ())
    return Reply(**values)


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    if not isinstance(call, dict) or "name" not in call:
        raise ScriptError("each of the step's calls needs a name")
    return ToolCall(name=call["name"], arguments=call.get("args") or {}, call_id=call.get("id"))
