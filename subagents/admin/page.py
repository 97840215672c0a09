"""The list of all subagents and the page of each, read-only whatever its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from engine.config.errors import Severity
from subagents import registry
from subagents.admin import details, wording
from subagents.admin.changelist import CatalogueChangeList
from subagents.admin.filters import SourceFilter, StateFilter
from subagents.admin.rows import entry_of, row
from subagents.adminkit import IS_UNFOLD, ModelAdmin, display
from subagents.catalogue import State
from subagents.errors import ConfigRefused
from subagents.models import ManagedSubagent

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

VIEW_PROMPT = "subagents.view_prompt"

if TYPE_CHECKING:
    _Base = ModelAdmin[ManagedSubagent]
else:
    _Base = ModelAdmin


@admin.register(ManagedSubagent)
class CatalogueAdmin(_Base):
    """Works on names, never on a queryset: built-in and config.yaml entries are in no table."""

    list_display = ["subagent", "source", "state", "limits", "model_in_force", "updated"]
    list_display_links = ["subagent"]
    list_filter = [SourceFilter, StateFilter]
    list_filter_sheet = False  # unfold: beside the list where there is room
    list_per_page = 50
    search_fields = ["name", "display_name", "description"]
    search_help_text = _("Search by name or by when to use it")
    show_facets = ShowFacets.NEVER  # the filters count entries themselves
    actions = None

    class Media:
        css = {"all": ["subagents/catalogue.css"]}

    # --- Nobody changes anything here ----------------------------------------------------------------------
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    # --- Pages ---------------------------------------------------------------------------------------------
    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CatalogueChangeList]:
        return CatalogueChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        entry = registry.current().catalogue.by_key(object_id)
        return row(entry) if entry else None

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        self._refuse_changes(request)
        try:
            now = registry.current()
        except ConfigRefused as refused:
            return self._refused_page(request, refused)
        unavailable = [entry for entry in now.catalogue.entries if entry.state is State.UNAVAILABLE]
        context = {
            "title": _("Subagents"),
            "config_refused": now.config_refused,
            "problems": now.problems,
            "entry_problem_count": sum(problem.severity is Severity.ENTRY for problem in now.problems),
            "conflicts": [
                (entry, wording.SOURCES[entry.shadowed_by])
                for entry in now.catalogue.entries
                if entry.shadowed_by is not None
            ],
            "unavailable": [(entry, wording.say(entry.reason)) for entry in unavailable if entry.reason],
            "subagents_opts": self.opts,
        }
        return super().changelist_view(request, context | (extra_context or {}))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one entry with everything it runs with. Addressed as `<source>-<name>`."""
        self._refuse_changes(request)
        try:
            entry = registry.current().catalogue.by_key(unquote(object_id))
        except ConfigRefused as refused:
            return self._refused_page(request, refused)
        if entry is None:
            messages.warning(request, _("There is no such subagent, or no longer."))
            return redirect("admin:subagents_managedsubagent_changelist")
        may_read_prompt = request.user.has_perm(VIEW_PROMPT)
        context = {
            **self._page_context(request, entry.definition.title),
            "original": row(entry),
            "entry": entry,
            "source_badge": source_badge(entry.source),
            "state_badge": state_badge(entry.state),
            "reason": wording.say(entry.reason) if entry.reason else "",
            "warnings": [wording.say(note) for note in entry.warnings],
            "groups": details.groups(entry),
            "may_read_prompt": may_read_prompt,
            "prompt": entry.definition.system_prompt if may_read_prompt else "",
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/subagents/managedsubagent/entry.html", context)

    def _refuse_changes(self, request: HttpRequest) -> None:
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied

    def _refused_page(self, request: HttpRequest, refused: ConfigRefused) -> TemplateResponse:
        context = {**self._page_context(request, _("Subagents")), "problems": refused.problems}
        return TemplateResponse(request, "admin/subagents/managedsubagent/refused.html", context, status=503)

    def _page_context(self, request: HttpRequest, title: object) -> dict[str, Any]:
        request.current_app = self.admin_site.name
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "is_unfold": IS_UNFOLD,
        }

    # --- Columns -------------------------------------------------------------------------------------------
    @display(description=_("Subagent"), ordering="name")
    def subagent(self, obj: ManagedSubagent) -> SafeString:
        definition = entry_of(obj).definition
        name = format_html(" <code>{}</code>", definition.name) if definition.display_name else ""
        first_line = definition.description.strip().split("\n", 1)[0]
        return format_html(
            '<span class="sa-who"><strong>{}</strong>{}<span class="sa-sub">{}</span></span>',
            definition.title,
            name,
            first_line,
        )

    @display(description=_("Source"), ordering="source")
    def source(self, obj: ManagedSubagent) -> SafeString:
        return source_badge(entry_of(obj).source)

    @display(description=_("State"), ordering="state")
    def state(self, obj: ManagedSubagent) -> SafeString:
        return state_badge(entry_of(obj).state)

    @display(description=_("Limits"), ordering="limits")
    def limits(self, obj: ManagedSubagent) -> SafeString:
        entry = entry_of(obj)
        if entry.state is State.INVALID:
            return format_html("{}", "–")
        parts = [
            details.with_overridden(entry, "max_turns", wording.turns_in_words),
            details.with_overridden(entry, "timeout_seconds", wording.seconds_in_words),
        ]
        return format_html('<span class="sa-limits">{} · {}</span>', *parts)

    @display(description=_("Model"), ordering="model")
    def model_in_force(self, obj: ManagedSubagent) -> SafeString:
        entry = entry_of(obj)
        if entry.state is State.INVALID:
            return format_html("{}", "–")
        return details.with_overridden(entry, "model", str)

    @display(description=_("Updated"), ordering="updated", empty_value="–")
    def updated(self, obj: ManagedSubagent) -> Any:
        return entry_of(obj).definition.updated_at


def source_badge(source: Any) -> SafeString:
    return format_html('<span class="sa-badge sa-source-{}">{}</span>', source.value, wording.SOURCES[source])


def state_badge(state: State) -> SafeString:
    return format_html(
        '<span class="sa-badge sa-state-{}"><span aria-hidden="true">{}</span> {}</span>',
        state.value,
        wording.SHAPES[state],
        wording.STATES[state],
    )
