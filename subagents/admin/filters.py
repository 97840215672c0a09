"""Filters of the lists. Rows are matched here and not by the database: most of them are in no table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.utils.translation import gettext_lazy as _

from subagents import registry
from subagents.wording import SOURCES, STATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest


class EntryFilter(SimpleListFilter):
    """Chooses entries by one of their facts, with the number of entries beside each choice."""

    labels: dict[Any, Any]
    fact: Callable[[Any], str]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        counts = Counter(type(self).fact(entry) for entry in model_admin.entries(registry.current()))
        labels = self.labels or {fact: fact for fact in sorted(counts)}
        return [(str(value), f"{label} ({counts[value]})") for value, label in labels.items() if counts[value]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset

    def matches(self, entry: Any) -> bool:
        return self.value() is None or self.value() == str(type(self).fact(entry))


class SourceFilter(EntryFilter):
    title = _("source")
    parameter_name = "source"
    labels = SOURCES
    fact = staticmethod(lambda entry: entry.source)


class StateFilter(EntryFilter):
    title = _("state")
    parameter_name = "state"
    labels = STATES
    fact = staticmethod(lambda entry: entry.state)


class ModelFilter(EntryFilter):
    """By the model in force; only where there is more than one."""

    title = _("model")
    parameter_name = "model"
    labels: dict[Any, Any] = {}
    fact = staticmethod(lambda entry: entry.effective.model)
