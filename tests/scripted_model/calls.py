"""The calls the server has had: what was asked, when what happened, and how many were open at once."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

KEPT_CALLS = 20_000  # the oldest go first, so a long measurement does not fill the memory


def text_of(content: object) -> str:
    """The text of a message's content, which is a string, a list of parts or null."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """One request, as it came and as it went. Times are seconds of CLOCK_MONOTONIC, None: did not happen."""

    number: int  # 1 for the first since the start or the last reset
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    body_bytes: int
    started_at: float
    message_count: int
    script_id: str = ""
    step: int = 0
    turn: int = 0  # assistant messages after the script
    status: int | None = None
    first_byte_at: float | None = None
    ended_at: float | None = None
    cut_at: float | None = None  # the script ended it early
    disconnected_at: float | None = None  # the client went away first

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        return self.body.get("messages") or ()

    @property
    def tool_names(self) -> tuple[str, ...]:
        tools = self.body.get("tools") or ()
        return tuple(tool["function"]["name"] for tool in tools)

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def wants_usage(self) -> bool:
        """Whether usage belongs in the answer: always, but in a stream only when asked for."""
        options = self.body.get("stream_options") or {}
        return not self.streamed or bool(options.get("include_usage"))

    @property
    def system_text(self) -> str:
        return "\n".join(text_of(m.get("content")) for m in self.messages if m.get("role") == "system")

    @property
    def user_text(self) -> str:
        """The text of the last user message."""
        texts = [text_of(m.get("content")) for m in self.messages if m.get("role") == "user"]
        return texts[-1] if texts else ""

    def times(self) -> dict[str, object]:
        """The record without the texts, for `GET /log`."""
        return {name: getattr(self, name) for name in TIMES}


TIMES = (
    "number",
    "script_id",
    "step",
    "turn",
    "status",
    "message_count",
    "body_bytes",
    "started_at",
    "first_byte_at",
    "ended_at",
    "cut_at",
    "disconnected_at",
)


@dataclass(slots=True)
class Ledger:
    """Every call and the counters over them. Written by the server's thread, readable from any other."""

    keeps_bodies: bool = True
    calls: deque[ModelCall] = field(default_factory=lambda: deque(maxlen=KEPT_CALLS))
    requests: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    failures: int = 0
    disconnects: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)
    _attempts: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    def begin(self, body: Mapping[str, Any], headers: Mapping[str, str], body_bytes: int) -> ModelCall:
        self.requests += 1
        call = ModelCall(
            number=self.requests,
            body=body,
            headers=headers,
            body_bytes=body_bytes,
            started_at=time.monotonic(),
            message_count=len(body.get("messages") or ()),
        )
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.calls.append(call)
        self.tell()
        return call

    def end(self, call: ModelCall) -> None:
        self.in_flight -= 1
        if not self.keeps_bodies:
            call.body, call.headers = {}, {}
        self.tell()

    def tell(self) -> None:
        """Wake whoever waits for a change."""
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, holds: Callable[[], bool], timeout_seconds: float) -> bool:
        with self.changed:
            return self.changed.wait_for(holds, timeout_seconds)

    def next_failure(self, call: ModelCall, statuses: Sequence[int]) -> int | None:
        """The status this attempt must fail with, None when it may succeed."""
        key = (call.script_id or f"request {call.number}", call.step)
        attempt = self._attempts[key]
        self._attempts[key] += 1
        if attempt >= len(statuses):
            return None
        self.failures += 1
        return statuses[attempt]

    def reset(self) -> None:
        """Forget the past. Calls that are still open stay counted as in flight."""
        self.calls.clear()
        self._attempts.clear()
        self.requests = self.failures = self.disconnects = 0
        self.max_in_flight = self.in_flight
        self.tell()

    def counters(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in COUNTERS}


COUNTERS = ("requests", "in_flight", "max_in_flight", "failures", "disconnects")
