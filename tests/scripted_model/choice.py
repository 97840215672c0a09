"""Which reply a request gets: its own script, the test's responder, the queue, the planner, the default."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.scripted_model.calls import ModelCall
from tests.scripted_model.reply import Reply
from tests.scripted_model.script import scripted_reply

Responder = Callable[[ModelCall], Reply | str | None]  # None: not mine, ask the next
DEFAULT = Reply(text="ok")


def as_reply(reply: Reply | str) -> Reply:
    return Reply(text=reply) if isinstance(reply, str) else reply


@dataclass(slots=True)
class ReplyChoice:
    """Asked in this order; the queue serves unscripted requests in the order they arrive."""

    planner: Responder | None = None
    responder: Responder | None = None
    default: Reply = DEFAULT
    queue: deque[Reply] = field(default_factory=deque)

    def enqueue(self, replies: Iterable[Reply | str]) -> None:
        self.queue.extend(map(as_reply, replies))

    def reply_to(self, call: ModelCall) -> Reply:
        """Raises ScriptError when the request's script cannot be played."""
        scripted = scripted_reply(call)
        if scripted:
            return scripted
        answer = self.responder(call) if self.responder else None
        if answer is None and self.queue:
            answer = self.queue.popleft()
        if answer is None and self.planner:
            answer = self.planner(call)
        return self.default if answer is None else as_reply(answer)

    def reset(self) -> None:
        self.responder = None
        self.queue.clear()
