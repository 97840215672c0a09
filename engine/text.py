"""What may be done to text before it is stored, sent or shown: make it storable, make it short."""

from __future__ import annotations

import math
import re
from typing import Final

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
# In a stored message's `additional_kwargs`: how much in it was replaced because nothing could carry it.
REPLACED: Final = "replaced_characters"
_MAX_DEPTH: Final = 200
_TOO_DEEP: Final = "… (nested too deeply)"


def clean(text: str) -> str:
    """Return `text` as every database, encoder and socket can carry it.

    NUL and lone surrogates become U+FFFD, one for one; two surrogate halves that belong
    together become the character they stand for. Everything else stays byte for byte.
    """
    if _UNSTORABLE.search(text) is None:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", "\ufffd")


def clean_json(value: object, *, depth: int = 0) -> object:
    """Return a copy of a JSON-like value whose strings are clean, keys included.

    Goes through str, list, tuple and dict and returns other values as they are, except
    that NaN and the infinities, which JSON cannot say, become None. Below 200 levels a
    container is replaced by a mark, because no encoder behind this would survive it.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list | tuple):
        return value
    if depth >= _MAX_DEPTH:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {
            clean(key) if isinstance(key, str) else key: clean_json(item, depth=depth + 1)
            for key, item in value.items()
        }
    items = [clean_json(item, depth=depth + 1) for item in value]
    return items if isinstance(value, list) else tuple(items)


def count_replaced(value: object) -> int:
    """Return how many characters and numbers `clean_json` replaces in a value of at most 200 levels."""
    if isinstance(value, str):
        return clean(value).count("\ufffd") - value.count("\ufffd") if _UNSTORABLE.search(value) else 0
    if isinstance(value, float):
        return 0 if math.isfinite(value) else 1
    found, layer = 0, [value]
    for _depth in range(_MAX_DEPTH):
        parts = [part for one in layer for part in _parts(one)]
        found += sum(count_replaced(part) for part in parts if isinstance(part, str | float))
        layer = [part for part in parts if isinstance(part, dict | list | tuple)]
        if not layer:
            break
    return found


def _parts(value: object) -> tuple[object, ...]:
    if isinstance(value, dict):
        return (*value, *value.values())
    return tuple(value) if isinstance(value, list | tuple) else ()


def shorten(text: str, limit: int) -> str:
    """Return `text` in at most `limit` characters, its end replaced by a mark that says how many went.

    A limit too small for the mark leaves a bare beginning. Raises ValueError below zero.
    """
    return _cut(text, limit, mark="… ({count} characters cut)", tail_share=0.0)


def middle_cut(text: str, limit: int) -> str:
    """Return `text` in at most `limit` characters, keeping head and tail around a mark with the count.

    A limit too small for the mark leaves a bare beginning. Raises ValueError below zero.
    """
    return _cut(text, limit, mark="\n… ({count} characters cut) …\n", tail_share=0.5)


def _cut(text: str, limit: int, *, mark: str, tail_share: float) -> str:
    if limit < 0:
        raise ValueError(f"a limit must not be negative, got {limit}")
    if len(text) <= limit:
        return text
    # The number inside the mark only grows with the text, so its longest form is a safe reserve.
    kept = limit - len(mark.format(count=len(text)))
    if kept <= 0:
        return text[:limit]
    tail = int(kept * tail_share)
    head = kept - tail
    return text[:head] + mark.format(count=len(text) - kept) + text[len(text) - tail :]
