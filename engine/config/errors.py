"""What is wrong with a configuration file, and where."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from engine.reasons import Reason, located

KeyPath = tuple[str | int, ...]

_SHOWN_KEY_LENGTH = 80
_BARE_KEY = re.compile(r"[^\s.\[\]\"\x00-\x1f\x7f]+( [^\s.\[\]\"\x00-\x1f\x7f]+)*")


class Severity(StrEnum):
    """How far a problem reaches: the whole file, one entry, or nothing at all."""

    REFUSED = "refused"
    ENTRY = "entry"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a file. `line` and `column` count from 1; `path` is empty for the file itself."""

    severity: Severity
    path: str
    line: int
    column: int
    message: str
    file_name: str = "config.yaml"

    @property
    def reason(self) -> Reason:
        """The message behind its place in the file."""
        where = f"{self.file_name}:{self.line}:{self.column}"
        return Reason("%(where)s %(said)s", where=where, said=located(self.path, self.message))

    def __str__(self) -> str:
        return str(self.reason)


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before its severity is known. `severity` None: decided by where `path` lies."""

    path: KeyPath
    line: int
    column: int
    message: str
    severity: Severity | None = None


def shorten(text: str, limit: int = 60) -> str:
    """Keep a message readable whatever the file holds: at most `limit` characters and an ellipsis."""
    return text if len(text) <= limit else text[:limit] + "…"


def quoted(text: str, limit: int = 60) -> str:
    """Show text inside double quotes, with control characters and lone surrogates escaped."""
    shown = json.dumps(shorten(text, limit), ensure_ascii=False)
    return shown.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x7f", "\\u007f")


def format_path(path: KeyPath) -> str:
    """`("models", 1, "api_key")` as `models[1].api_key`; a key with dots, brackets or controls is quoted."""
    shown = ""
    for step in path:
        if isinstance(step, int):
            shown += f"[{step}]"
            continue
        plain = len(step) <= _SHOWN_KEY_LENGTH and _BARE_KEY.fullmatch(step) and step.isprintable()
        key = step if plain else quoted(step, _SHOWN_KEY_LENGTH)
        shown += f".{key}" if shown else key
    return shown
