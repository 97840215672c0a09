"""Fields of requests that several endpoints read alike: pages, lists of ids, selections. Bad input names its field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runs.agent_protocol.bodies import an_id
from runs.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

MAX_PAGE: Final = 1000
MAX_OFFSET: Final = 10**9


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of what was found is wanted."""

    limit: int
    offset: int

    def headers(self, total: int) -> dict[str, str]:
        """What the answer says of the whole: how many there are, and where the next page begins when there is one."""
        after = self.offset + self.limit
        more = {"X-Pagination-Next": str(after)} if after < total else {}
        return {"X-Pagination-Total": str(total), **more}

    @property
    def part(self) -> slice:
        return slice(self.offset, self.offset + self.limit)


def a_page(body: Mapping[str, Any], *, limit: int = 10) -> Page:
    return Page(
        min(a_count(body, "limit", limit, least=1), MAX_PAGE), a_count(body, "offset", 0, least=0, most=MAX_OFFSET)
    )


def a_count(body: Mapping[str, Any], field: str, default: int, *, least: int, most: int = MAX_OFFSET) -> int:
    value = body.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadInput(field, f"expected a whole number from {least} to {most}")
    return value


def some_ids(body: Mapping[str, Any], field: str, *, required: bool = False) -> list[UUID] | None:
    """A list of UUIDs; None when there is none."""
    value = body.get(field)
    if value is None and not required:
        return None
    if not isinstance(value, list) or len(value) > MAX_PAGE:
        raise BadInput(field, f"expected a list of at most {MAX_PAGE} UUIDs")
    return [an_id(one, f"{field}[{place}]") for place, one in enumerate(value)]


def a_text(body: Mapping[str, Any], field: str, *, most: int, default: str | None = None) -> str | None:
    value = body.get(field)
    if value is None:
        return default
    if not isinstance(value, str) or len(value) > most:
        raise BadInput(field, f"expected text of at most {most} characters")
    return value


def a_selection(body: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """The fields a request wants of each object; all of them when it names none."""
    value = body.get("select")
    if value is None or value == []:
        return list(fields)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadInput("select", "expected a list of field names")
    for one in value:
        if one not in fields:
            raise BadInput("select", f"expected some of {', '.join(fields)}")
    return list(dict.fromkeys(value))
