"""Filters, search, order and pages of lists. The catalogue is in no table, so the database cannot do this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import EmptyPage, Paginator
from django.utils.translation import gettext
from rest_framework import serializers

from access.api.problems import Problem
from access.api.queries import MOST_PER_PAGE
from subagents.catalogue import State
from subagents.definitions import Source
from subagents.finding import ORDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_LONGEST_SEARCH: Final = 200


class PageQuery(serializers.Serializer):  # type: ignore[type-arg]
    page = serializers.IntegerField(min_value=1, max_value=1_000_000, default=1)
    page_size = serializers.IntegerField(min_value=1, max_value=MOST_PER_PAGE, default=50)


class ListQuery(PageQuery):
    q = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=_LONGEST_SEARCH,
        help_text="Every word must occur in name, display name or description.",
    )
    state = serializers.ChoiceField(choices=[state.value for state in State], required=False)
    enabled = serializers.BooleanField(required=False, default=None, allow_null=True)
    model = serializers.CharField(required=False, max_length=300, help_text="The model in force.")


def ordering_field(names: Iterable[str]) -> serializers.ChoiceField:
    choices = [sign + name for name in names for sign in ("", "-")]
    return serializers.ChoiceField(choices=choices, required=False, help_text="A minus sign turns the order round.")


SUBAGENT_ORDERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **{name: ORDERS[key] for name, key in (("name", "name"), ("source", "source"), ("state", "state"))},
    "model": ORDERS["model"],
    "max_turns": lambda entry: entry.effective.max_turns,
    "timeout_seconds": lambda entry: entry.effective.timeout_seconds,
    "updated_at": ORDERS["updated"],
}


class SubagentQuery(ListQuery):
    source = serializers.ChoiceField(choices=[source.value for source in Source], required=False)
    conflict = serializers.BooleanField(required=False, default=None, allow_null=True)
    ordering = ordering_field(SUBAGENT_ORDERS)
    expand = serializers.ChoiceField(choices=["layers"], required=False, help_text="Adds where each value comes from.")


def page_of(request: Any, found: Sequence[Any], query: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """One page of what was found, and how to get to its neighbours."""
    paginator = Paginator(found, query["page_size"])
    try:
        page = paginator.page(query["page"])
    except EmptyPage:
        raise Problem("not_found", gettext("There is no such page.")) from None
    return list(page.object_list), {
        "count": paginator.count,
        "page": page.number,
        "pages": paginator.num_pages,
        "next": _address(request, page.number + 1) if page.has_next() else None,
        "previous": _address(request, page.number - 1) if page.has_previous() else None,
    }


def ordered(found: Iterable[Any], ordering: str | None, orders: Mapping[str, Callable[[Any], Any]]) -> list[Any]:
    if not ordering:
        return list(found)
    return sorted(found, key=orders[ordering.removeprefix("-")], reverse=ordering.startswith("-"))


def _address(request: Any, page: int) -> str:
    parameters = request.query_params.copy()
    parameters["page"] = page
    # Relative to the host: what stands in front of us may be reached under another name.
    return f"{request.path}?{parameters.urlencode()}"
