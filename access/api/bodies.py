"""Reading bodies strictly: what a store, an encoder or another reader would choke on is refused by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

from django.utils.translation import gettext
from rest_framework.parsers import BaseParser

from access.api.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_BODY_BYTES: Final = 8 << 20
MAX_DEPTH: Final = 100  # of lists and objects in each other


class StrictJSONParser(BaseParser):
    """UTF-8 JSON without NaN, without the same key twice, and not nested beyond reason."""

    media_type = "application/json"

    @staticmethod
    def takes(content_type: str) -> bool:
        return content_type == "application/json" or content_type.endswith("+json")

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        raw = stream.read(MAX_BODY_BYTES + 1)
        if len(raw) > MAX_BODY_BYTES:
            raise Problem("too_large", gettext("The body has more than %(most)s bytes.") % {"most": MAX_BODY_BYTES})
        if not raw.strip():
            return {}
        try:
            body = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant, object_pairs_hook=_each_key_once)
        except RecursionError:
            raise _too_deep() from None
        except ValueError as fault:
            # The decoder's own words hold a place, never more of the body than one character.
            raise Problem("invalid_json", str(fault)) from None
        _check_depth(body)
        return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(gettext("%(name)s is not JSON") % {"name": name})


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _value in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(gettext("the key “%(key)s” stands there twice") % {"key": twice[:80]})
    return found


def _check_depth(body: Any) -> None:
    level: list[Any] = [body]
    for _depth in range(MAX_DEPTH + 1):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> Problem:
    return Problem("invalid_json", gettext("It is nested deeper than %(most)s levels.") % {"most": MAX_DEPTH})


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
