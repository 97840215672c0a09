"""`If-Match`: whoever changes something says which version they saw (RFC 9110 §13.1.1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext

from access.api.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

_TAG: Final = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|\Z)')


def expected_version(request: Any, current: Callable[[], str | None]) -> str:
    """The version that the request names. `*` is whatever is stored now; `current` asks for that.

    Raises Problem 428 without the header. Of several tags the one that holds now counts; a weak tag never matches.
    """
    header: str | None = request.headers.get("if-match")
    if header is None or not header.strip():
        raise Problem(
            "if_match_missing", gettext("Send If-Match with the ETag that you got when you read it, in quotes.")
        )
    if header.strip() == "*":
        return current() or ""
    tags = _strong_tags(header)
    if len(tags) == 1:
        return tags[0]
    now = current()
    return now if now in tags else (tags[0] if tags else "")  # type: ignore[return-value]


def etag(version: str | None) -> dict[str, str]:
    return {"ETag": f'"{version}"'} if version else {}


def _strong_tags(header: str) -> list[str]:
    """The opaque texts of the header's strong tags. Raises Problem when it is no list of tags."""
    tags, position = [], 0
    while position < len(header):
        found = _TAG.match(header, position)
        if found is None:
            raise Problem("bad_request", gettext('If-Match has to be "…", a list of such tags, or *.'))
        if not found[1]:
            tags.append(found[2])
        position = found.end()
    return tags
