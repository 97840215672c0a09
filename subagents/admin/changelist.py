"""Django's change list over entries of either kind instead of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR
from django.core.paginator import InvalidPage

from subagents import registry
from subagents.admin.authors import authors_of
from subagents.admin.filters import EntryFilter
from subagents.adminkit import ChangeList
from subagents.definitions import Source
from subagents.finding import by_use, search

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from subagents.admin.base import DefinitionAdmin
    from subagents.usage import Use


class DefinitionChangeList(ChangeList):
    """Searches, filters, sorts and pages entries; `queryset` stays an unused real one for Django's own checks.

    `found` holds every entry that search and filters leave, on all pages.
    """

    found: list[Any]
    model_admin: DefinitionAdmin

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        # The skin asks for the addresses of the headings again in each row.
        asked = repr((new_params, remove))
        known: dict[str, str] = self.__dict__.setdefault("_query_strings", {})
        if asked not in known:
            known[asked] = super().get_query_string(new_params, remove)
        return known[asked]

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["name"]

    def get_results(self, request: HttpRequest) -> None:
        entries = self.model_admin.entries(registry.current())
        filters = [spec for spec in self.filter_specs if isinstance(spec, EntryFilter)]
        found: Any = [entry for entry in search(entries, self.query) if all(spec.matches(entry) for spec in filters)]
        uses = self._sort(found)
        self.found = found
        paginator: Any = self.model_admin.get_paginator(request, found, self.list_per_page)
        self.paginator = paginator
        self.result_count = paginator.count
        self.full_result_count = len(entries)
        self.show_full_result_count = True
        self.show_admin_actions = any(entry.source is Source.MANAGED for entry in found)
        self.can_show_all = paginator.count <= self.list_max_show_all
        self.multi_page = paginator.num_pages > 1
        try:
            page = 1 if self.show_all else self.page_num
            shown = found if self.show_all and self.can_show_all else paginator.page(page).object_list
        except InvalidPage:
            raise IncorrectLookupParameters from None
        self.result_list = self._rows(request, shown, uses)

    def _rows(self, request: HttpRequest, entries: Sequence[Any], uses: Mapping[str, Use] | None) -> list[Any]:
        """Dress the entries of one page with what is asked for once for all of them."""
        if uses is None:
            uses = self.model_admin.uses({entry.name for entry in entries})
        authors = authors_of(entries, kind=self.model_admin.kind.name)
        may_change = self.model_admin.has_change_permission(request)
        rows = []
        for entry in entries:
            instance = self.model_admin.row(entry)
            # Runs are of the name, so they are shown beside whoever holds it.
            instance.use = uses.get(entry.name) if entry.shadowed_by is None else None
            instance.author = authors.get(entry.name, "") if entry.source is Source.MANAGED else ""
            instance.may_switch = may_change and entry.source is Source.MANAGED and not entry.problems
            rows.append(instance)
        return rows

    def _sort(self, entries: list[Any]) -> Mapping[str, Use] | None:
        """Sort in place by the columns that the address names, the first one strongest; the page's order otherwise.

        Returns the use of all entries where it was needed for that.
        """
        columns = [column for column in map(self._column, str(self.params.get(ORDER_VAR, "")).split(".")) if column]
        is_by_use = any(name == "used" for name, _reverse in columns)
        uses = self.model_admin.uses({entry.name for entry in entries}) if is_by_use else None
        for name, reverse in reversed(columns):
            order = by_use(uses or {}) if name == "used" else self.model_admin.orders.get(name)
            if order is not None:
                entries.sort(key=order, reverse=reverse)
        return uses

    def _column(self, written: str) -> tuple[str, bool] | None:
        """Return what a column of the address sorts by, and whether backwards; None for one that does not exist."""
        index = written.removeprefix("-")
        if not (index.isascii() and index.isdigit() and int(index[:4]) < len(self.list_display)):
            return None
        return str(self.get_ordering_field(self.list_display[int(index[:4])])), written.startswith("-")
