"""What an unquoted scalar means.

YAML 1.1 and 1.2 disagree about many unquoted words and numbers (`no`, `0600`, `1_000`, `1e3`,
dates). Only what both read alike gets a meaning here; the rest is a `Surprise` for the reader
to report, so that nothing is converted behind the operator's back.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from engine.reasons import Reason
from engine.reasons import gettext_noop as _

Scalar = str | int | float | bool | None

_MAX_INTEGER_DIGITS = 18  # what a signed 64-bit column holds
_CONSTANTS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?")
_LONGEST_NUMBER = 64

_TOO_LARGE = _("the number is too large; quote it if it is meant as text")
_SURPRISES = (
    (re.compile(r"(?i:yes|no|on|off)"), _("write true or false, or quote it if it is meant as text")),
    (
        re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?"),
        _("write the number without underscores, or quote it if it is meant as text"),
    ),
    (re.compile(r"[-+]?0[0-9_]+"), _("drop the leading zero, or quote it if it is meant as text")),
    (re.compile(r"[-+]?0[xob][0-9A-Fa-f_]+"), _("write the number in decimal, or quote it if it is meant as text")),
    (
        re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+"),
        _("write the number out, or quote it if it is meant as text"),
    ),
    (
        re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?"),
        _("some readers take it as a base-60 number; quote it if it is meant as text"),
    ),
    (
        re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t][0-9:.+\-Zz \t]*)?"),
        _("some readers take it as a date; quote it if it is meant as text"),
    ),
    (re.compile(r"[-+]?\.(?i:inf|nan)"), _("only finite numbers are accepted; quote it if it is meant as text")),
)


@dataclass(frozen=True, slots=True)
class Surprise:
    """An unquoted scalar that YAML readers understand differently. `advice` says what to write instead."""

    text: str
    advice: str


def resolve(text: str) -> Scalar | Surprise:
    """Return the value of an unquoted scalar, or why it must be written in another way."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > _LONGEST_NUMBER and not text.isdigit():
        return text
    if _INTEGER.fullmatch(text):
        if len(text.lstrip("+-")) > _MAX_INTEGER_DIGITS:
            return Surprise(text, Reason(_TOO_LARGE))
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else Surprise(text, Reason(_TOO_LARGE))
    for pattern, advice in _SURPRISES:
        if pattern.fullmatch(text):
            return Surprise(text, Reason(advice))
    return text
