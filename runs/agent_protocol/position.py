"""Where a reader of a run's stream stands: the `id` of an event, and what a `Last-Event-ID` asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_LETTERS: Final = {
    "values": "v",
    "updates": "u",
    "messages": "m",
    "messages-tuple": "t",
    "custom": "c",
    "tasks": "k",
    "checkpoints": "p",
    "debug": "d",
    "events": "e",
}
_MODES: Final = {letter: mode for mode, letter in _LETTERS.items()}
_ID: Final = re.compile(r"(\d{1,18})(?:\.(\d{1,2}))?(?:~([vumtckpde]{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    """After the first `part` events of row `seq`, or after all of it when `part` is 0.

    `modes` is set when the reader asked for others than the run was created with: a client that reconnects
    repeats the id but not the query.
    """

    seq: int
    part: int = 0
    modes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """None for what this server never sent."""
        found = _ID.fullmatch(text)
        if found is None:
            return None
        modes = tuple(dict.fromkeys(_MODES[letter] for letter in found[3] or ""))
        return cls(int(found[1]), int(found[2] or 0), modes)

    def __str__(self) -> str:
        part = f".{self.part}" if self.part else ""
        return f"{self.seq}{part}{suffix(self.modes)}"

    @property
    def rows_after(self) -> int:
        """The number past which rows are still to be read: a row of which only a part was seen is read again."""
        return self.seq - 1 if self.part else self.seq


def suffix(modes: tuple[str, ...]) -> str:
    return "~" + "".join(_LETTERS[mode] for mode in modes) if modes else ""
