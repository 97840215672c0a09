"""Where two tapes differ, and which of these differences are known."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.oracle.tape import flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.tape import Tape

LIST: Final = Path(__file__).with_name("differences.toml")
NOTHING: Final = "<nothing>"


@dataclass(frozen=True, slots=True)
class Difference:
    step: str
    path: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.step} {self.path}\n    ours   {self.ours!r}\n    theirs {self.theirs!r}"


@dataclass(frozen=True, slots=True)
class Known:
    """A difference that is meant; `step` and `path` are patterns of fnmatch."""

    step: str
    path: str
    reason: str

    def covers(self, difference: Difference) -> bool:
        return fnmatchcase(difference.step, self.step) and fnmatchcase(difference.path, self.path)


def differences(ours: Tape, theirs: Tape) -> Iterator[Difference]:
    for step in dict.fromkeys([*theirs.steps, *ours.steps]):
        mine, other = flat(ours.steps.get(step, {})), flat(theirs.steps.get(step, {}))
        for path in dict.fromkeys([*other, *mine]):
            if mine.get(path, NOTHING) != other.get(path, NOTHING):
                yield Difference(step, path, mine.get(path, NOTHING), other.get(path, NOTHING))


def known() -> list[Known]:
    read = tomllib.loads(LIST.read_text("utf-8"))
    return [Known(one["step"], one["path"], one["reason"]) for one in read["difference"]]
