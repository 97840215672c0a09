"""The text of the reply that is being written: its first piece goes out at once, the rest in rows of 50 ms."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from runs.event_types import Delta

if TYPE_CHECKING:
    from collections.abc import Callable

FLUSH_SECONDS = 0.05


class Deltas:
    """Collects pieces; `send` is called with one Delta at a time, from the event loop."""

    def __init__(self, send: Callable[[Delta], None], *, patient: bool = False) -> None:
        self._send = send
        self._first_seconds = FLUSH_SECONDS if patient else 0.0  # nobody waits for a subagent's first word
        self._loop = asyncio.get_running_loop()
        self._pieces: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._restarts = False
        self._sent_at = float("-inf")
        self.message_id = ""
        self.text = ""  # everything of this message so far: what is kept when the run is stopped in the middle

    def add(self, message_id: str, piece: str, *, restarts: bool = False) -> None:
        """Take a further piece; with `restarts` it is the first one of a message that is written anew."""
        if restarts:
            self._pieces.clear()
            self.text, self._restarts = "", True
        elif message_id != self.message_id:
            self.flush()
            self._sent_at = float("-inf")
        if message_id != self.message_id:
            self.message_id, self.text = message_id, ""
        self.text += piece
        self._pieces.append(piece)
        if self._timer is None:
            due = max(self._first_seconds, self._sent_at + FLUSH_SECONDS - self._loop.time())
            self._timer = self._loop.call_later(due, self.flush)

    def flush(self) -> None:
        """Send what has collected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pieces:
            piece, self._pieces = "".join(self._pieces), []
            self._sent_at = self._loop.time()
            restarts, self._restarts = self._restarts, False
            self._send(Delta(id=self.message_id, text=piece, restarts=restarts or None))

    def settled(self) -> None:
        """The message is stored whole: its pieces need not be sent any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pieces.clear()
        self.message_id = self.text = ""
        self._restarts = False
        self._sent_at = float("-inf")
