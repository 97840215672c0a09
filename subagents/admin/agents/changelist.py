"""Django's change list over custom agents of whichever backend, broken ones too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR
from django.core.paginator import InvalidPage
from django.utils.translation import gettext_lazy as _

from subagents import registry, usage
from subagents.admin.agents.rows import row
from subagents.adminkit import ChangeList
from subagents.finding import AGENT_ORDERS, search
from subagents.wording import STATES

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from subagents.agent_entries import AgentEntry


class AgentChangeList(ChangeList):
    """Searches, filters, sorts and pages agents; `queryset` stays an unused real one for Django's own checks.

    `found` holds every agent that search and filters leave, on all pages.
    """

    found: list[AgentEntry]

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["name"]

    def get_results(self, request: HttpRequest) -> None:
        entries = registry.current().agents
        filters = [spec for spec in self.filter_specs if isinstance(spec, AgentStateFilter)]
        found: Any = [entry for entry in search(entries, self.query) if all(spec.matches(entry) for spec in filters)]
        self._sort(found)
        self.found = found
        paginator: Any = self.model_admin.get_paginator(request, found, self.list_per_page)
        self.paginator = paginator
        self.result_count = paginator.count
        self.full_result_count = len(entries)
        self.show_full_result_count = True
        self.show_admin_actions = bool(found)
        self.can_show_all = paginator.count <= self.list_max_show_all
        self.multi_page = paginator.num_pages > 1
        try:
            page = 1 if self.show_all else self.page_num
            shown = found if self.show_all and self.can_show_all else paginator.page(page).object_list
        except InvalidPage:
            raise IncorrectLookupParameters from None
        self.result_list = self._rows(request, shown)

    def _rows(self, request: HttpRequest, entries: Any) -> list[Any]:
        uses = usage.agents_last_used({entry.name for entry in entries})
        may_switch = self.model_admin.has_change_permission(request)
        rows = []
        for entry in entries:
            instance: Any = row(entry)
            instance.use, instance.may_switch = uses.get(entry.name), may_switch and not entry.problems
            rows.append(instance)
        return rows

    def _sort(self, entries: list[AgentEntry]) -> None:
        """Sort in place by the columns that the address names, the first one strongest; by name otherwise."""
        for column in reversed(str(self.params.get(ORDER_VAR, "")).split(".")):
            index = column.removeprefix("-")
            if not (index.isascii() and index.isdigit() and int(index[:4]) < len(self.list_display)):
                continue
            order = AGENT_ORDERS.get(str(self.get_ordering_field(self.list_display[int(index[:4])])))
            if order is not None:
                entries.sort(key=order, reverse=column.startswith("-"))  # type: ignore[arg-type]


class AgentStateFilter(SimpleListFilter):
    """By state, with the number of agents beside each choice. Rows are matched here and not by the database."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        counts = Counter(entry.state for entry in registry.current().agents)
        return [(state.value, f"{label} ({counts[state]})") for state, label in STATES.items() if counts[state]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset

    def matches(self, entry: AgentEntry) -> bool:
        return self.value() is None or self.value() == entry.state.value
