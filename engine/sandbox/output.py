"""Keeps the beginning and the end of a stream of any length."""

from __future__ import annotations

from engine.text import clean


class OutputWindow:
    """Takes bytes without bound and holds at most `limit` of them: the first half and the last half."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._head_limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        surplus = len(self._tail) - self._tail_limit
        if surplus > 0:
            del self._tail[:surplus]

    @property
    def cut_bytes(self) -> int:
        return self.total - len(self._head) - len(self._tail)

    def text(self) -> str:
        """What was kept as storable text, with a mark where bytes are missing."""
        if not self.cut_bytes:
            return clean(bytes(self._head + self._tail).decode("utf-8", "replace"))
        # A cut may fall inside a character; its torn bytes are part of what is missing.
        head = self._head.decode("utf-8", "replace").rstrip("\ufffd")
        tail = self._tail.decode("utf-8", "replace").lstrip("\ufffd")
        return clean(f"{head}\n… ({self.cut_bytes} bytes cut) …\n{tail}")
