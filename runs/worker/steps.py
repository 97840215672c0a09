"""What a run's messages mean for its counters, and for the card its parent's thread shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.delegation.names import TASK
from engine.text import shorten
from runs.event_types import Fact, TaskStep
from runs.transcript import WireMessage, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.ports import Counters
    from runs.models import Run

_LINE_LENGTH = 200
_SALIENT = ("path", "command", "pattern", "url", "query", "description", "name", "prompt", "content")


class Meter:
    """Usage of one run, counted once from what providers report; attempts before this one are in the row."""

    def __init__(self, run: Run) -> None:
        self.model_calls = run.model_calls
        self.input_tokens = run.input_tokens
        self.output_tokens = run.output_tokens
        self.cached_tokens = run.cached_tokens
        self.guard_tokens = run.guard_tokens
        self.estimated = run.usage_estimated
        self.model = run.model

    def count(self, message: WireMessage, counters: Counters) -> None:
        """Take in a reply, or a summary, which is a call of a model but no turn."""
        if message["type"] != "ai" and "summary" not in message:
            return
        self.model_calls = max(self.model_calls, counters.model_calls)
        self.guard_tokens = max(self.guard_tokens, counters.tokens)
        self.estimated = self.estimated or counters.tokens_estimated
        usage = message.get("usage_metadata")
        if not usage:
            return
        self.input_tokens = (self.input_tokens or 0) + int(usage.get("input_tokens") or 0)
        self.output_tokens = (self.output_tokens or 0) + int(usage.get("output_tokens") or 0)
        cached = (usage.get("input_token_details") or {}).get("cache_read")
        if cached is not None:
            self.cached_tokens = (self.cached_tokens or 0) + int(cached)

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def changes(self, counters: Counters) -> dict[str, Any]:
        """The run's columns as they stand, with the guard that has ended it: nobody who continues it may lose that."""
        stopped = counters.stop_reason
        return {
            **({"stop_reason": stopped.value, "stop_detail": counters.stop_detail} if stopped else {}),
            "model_calls": self.model_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "guard_tokens": self.guard_tokens,
            "usage_estimated": self.estimated,
        }


def salient(arguments: Any) -> str:
    """The one argument that says most about a call, as one bounded line."""
    if not isinstance(arguments, dict):
        return ""
    for name in _SALIENT:
        if isinstance(arguments.get(name), str) and arguments[name].strip():
            return one_line(arguments[name])
    return one_line(", ".join(f"{name}={value}" for name, value in arguments.items()))


def one_line(text: str) -> str:
    return shorten(" ".join(text.split()), _LINE_LENGTH)


def task_steps(run: Run, entries: Iterable[WireMessage], meter: Meter) -> Sequence[Fact]:
    """A child's messages as steps of its card; nothing for a lead."""
    if run.parent_id is None:
        return ()
    steps: list[Fact] = []
    common: dict[str, Any] = {
        "task": str(run.pk),
        "turn": meter.model_calls,
        "total_tokens": meter.total_tokens,
    }
    for entry in entries:
        words = one_line(text_of(entry))
        if entry["type"] == "tool":
            failed = entry.get("status") == "error"
            call: dict[str, Any] = {"call": str(entry.get("tool_call_id", "")), "tool": str(entry.get("name") or "")}
            steps.append(TaskStep(kind="tool_result", text=words, failed=failed, **call, **common))
        elif entry["type"] == "ai":
            if words:
                steps.append(TaskStep(kind="text", text=words, **common))
            steps.extend(
                TaskStep(kind="tool", call=str(c["id"]), tool=str(c["name"]), text=salient(c.get("args")), **common)
                for c in entry.get("tool_calls") or ()
            )
    return steps


def delegations(entries: Sequence[WireMessage]) -> int:
    """How many subagents these messages ask for."""
    return sum(call["name"] == TASK for entry in entries for call in entry.get("tool_calls") or ())


def only_delegations(entries: Sequence[WireMessage]) -> bool:
    """Whether these messages call `task` and nothing else, or are results of it and of nothing else."""
    names = [
        str(name)
        for entry in entries
        for name in ([call["name"] for call in entry.get("tool_calls") or ()] or [entry.get("name")])
    ]
    return bool(names) and all(name == TASK for name in names)
