"""One definition as the bytes of a JSON file: strict in what is read, the same bytes for the same document."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NoReturn

from engine.reasons import Reason
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Mapping

# More than the longest valid definition takes when every character of it is written as an escape.
LARGEST_FILE: Final = 8 << 20

_BOM: Final = b"\xef\xbb\xbf"


def to_bytes(document: Mapping[str, object]) -> bytes:
    """Return the document as a file: UTF-8, indented, one line at the end."""
    return (json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode("utf-8")


def from_bytes(raw: bytes) -> dict[str, object]:
    """Return the object that a file holds; a BOM is tolerated.

    Raises ValueError with a sentence that names the place: not UTF-8, not JSON, a key given twice, NaN, no object.
    """
    body = raw.removeprefix(_BOM)
    if not body.strip():
        raise ValueError(Reason(_("the file is empty")))
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as fault:
        place = fault.start + len(raw) - len(body)
        raise ValueError(Reason(_("not UTF-8 at byte %(place)s; save the file as UTF-8"), place=place)) from None
    try:
        value = json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    except json.JSONDecodeError as fault:
        sentence = _("not JSON at line %(line)s, column %(column)s: %(problem)s")
        raise ValueError(Reason(sentence, line=fault.lineno, column=fault.colno, problem=fault.msg)) from None
    except RecursionError:
        raise ValueError(Reason(_("nested too deeply"))) from None
    if not isinstance(value, dict):
        raise ValueError(Reason(_("expected an object with the fields of a definition")))
    return value


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _value in pairs).items() if count > 1)
        raise ValueError(Reason(_("the key %(name)s is given twice"), name=json.dumps(twice)))
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(Reason(_("%(value)s is not a value that JSON knows"), value=name))
