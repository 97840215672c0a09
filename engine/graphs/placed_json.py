"""JSON whose values remember where they stand, so that a complaint can name a line. No duplicate is lost."""

from __future__ import annotations

import json
import json.scanner
from dataclasses import dataclass
from typing import Any

MAX_SIZE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Placed:
    """A value and the offset of its first character. Objects are Pairs, arrays lists of Placed."""

    value: Any
    offset: int


class Unreadable(Exception):
    """Bytes that are no JSON document; line and column count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def read(raw: bytes) -> tuple[Placed, str]:
    """Return the document and its text. Raises Unreadable."""
    if len(raw) > MAX_SIZE_BYTES:
        raise Unreadable(f"the file has {len(raw)} bytes; at most {MAX_SIZE_BYTES} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise Unreadable(f"not UTF-8: byte offset {fault.start}; save the file as UTF-8") from None
    try:
        return _Decoder().decode(text), text
    except json.JSONDecodeError as fault:
        raise Unreadable(f"not JSON: {fault.msg}", fault.lineno, fault.colno) from None
    except RecursionError:
        raise Unreadable("not JSON: nested too deeply") from None
    except ValueError as fault:
        raise Unreadable(f"not JSON: {str(fault)[:80]}") from None


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


class Pairs(list[tuple[str, Placed]]):
    """A JSON object in the order of the file, duplicates included."""


class _Decoder(json.JSONDecoder):
    """The standard library's decoder, each value wrapped where it is scanned."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=Pairs, parse_constant=_no_constant)
        objects: Any = getattr(self, "parse_object")  # noqa: B009 - the stubs do not know its type
        arrays: Any = getattr(self, "parse_array")  # noqa: B009

        # The scanner hands itself on to objects and arrays; ours goes in its place, so what they hold is wrapped too.
        def placed(text: str, offset: int) -> tuple[Placed, int]:
            value, end = scan(text, offset)
            return Placed(value, offset), end

        def parse_object(source: Any, strict: bool, _scan: Any, *hooks: Any) -> Any:
            return objects(source, strict, placed, *hooks)

        def parse_array(source: Any, _scan: Any) -> Any:
            return arrays(source, placed)

        self.parse_object, self.parse_array = parse_object, parse_array
        scan: Any = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]
        self.scan_once = placed


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
