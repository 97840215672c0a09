"""Django's change list over the merged catalogue instead of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR
from django.core.paginator import InvalidPage

from subagents import registry
from subagents.admin.filters import EntryFilter
from subagents.admin.rows import ORDERS, row, search
from subagents.adminkit import ChangeList

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from subagents.catalogue import Entry


class CatalogueChangeList(ChangeList):
    """Searches, filters, sorts and pages entries; `queryset` stays an unused real one for Django's own checks."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["name"]

    def get_results(self, request: HttpRequest) -> None:
        entries = registry.current().catalogue.entries
        filters = [spec for spec in self.filter_specs if isinstance(spec, EntryFilter)]
        found: Any = [entry for entry in search(entries, self.query) if all(spec.matches(entry) for spec in filters)]
        self._sort(found)
        paginator = self.model_admin.get_paginator(request, found, self.list_per_page)
        self.paginator = paginator
        self.result_count = paginator.count
        self.full_result_count = len(entries)
        self.show_full_result_count = True
        self.show_admin_actions = False
        self.can_show_all = paginator.count <= self.list_max_show_all
        self.multi_page = paginator.num_pages > 1
        try:
            page = 1 if self.show_all else self.page_num
            shown = found if self.show_all and self.can_show_all else paginator.page(page).object_list
        except InvalidPage:
            raise IncorrectLookupParameters from None
        self.result_list = [row(entry) for entry in shown]

    def _sort(self, entries: list[Entry]) -> None:
        """Sort in place by the columns that the address names, the first one strongest; catalogue order otherwise."""
        for column in reversed(str(self.params.get(ORDER_VAR, "")).split(".")):
            index = column.removeprefix("-")
            if not (index.isascii() and index.isdigit() and int(index[:4]) < len(self.list_display)):
                continue
            order = ORDERS.get(str(self.get_ordering_field(self.list_display[int(index[:4])])))
            if order is not None:
                entries.sort(key=order, reverse=column.startswith("-"))  # type: ignore[arg-type]
