"""The Subagents page of the admin: the list of the whole catalogue, and which view answers which address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext_lazy as _

from engine.config.errors import Severity
from subagents import registry, wording
from subagents.actor import Actor
from subagents.admin import deleting, editing, history, live, switching
from subagents.admin.changelist import CatalogueChangeList
from subagents.admin.columns import Columns, checkbox, lock
from subagents.admin.filters import ModelFilter, SourceFilter, StateFilter
from subagents.admin.rows import entry_of, row
from subagents.adminkit import IS_UNFOLD, ModelAdmin
from subagents.catalogue import State
from subagents.definitions import Source
from subagents.errors import ConfigRefused
from subagents.models import VIEW_PROMPT, ManagedSubagent

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import AbstractBaseUser
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from subagents.catalogue import Entry
    from subagents.registry import Registry

    _Base = ModelAdmin[ManagedSubagent]
else:
    _Base = ModelAdmin

TEMPLATES = "admin/subagents/managedsubagent"


@admin.register(ManagedSubagent)
class CatalogueAdmin(Columns, _Base):
    """Works on names, never on a queryset: built-in and config.yaml entries are in no table."""

    list_display = ["subagent", "source", "state", "limits", "model_in_force", "last_use", "updated"]
    list_display_links = ["subagent"]
    list_filter = [SourceFilter, StateFilter, ModelFilter]
    list_filter_sheet = False  # unfold: beside the list where there is room
    list_per_page = 50
    search_fields = ["name", "display_name", "description"]
    search_help_text = _("Search by name or by when to use it")
    show_facets = ShowFacets.NEVER  # the filters count entries themselves

    class Media:
        css = {"all": ["subagents/catalogue.css", "subagents/forms.css"]}

    # --- Who may do what -----------------------------------------------------------------------------------
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request) and _is_managed(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request) and _is_managed(obj)

    def may_read_prompts(self, request: HttpRequest) -> bool:
        return request.user.has_perm(VIEW_PROMPT)

    def actor(self, request: HttpRequest) -> Actor:
        return Actor(user=cast("AbstractBaseUser", request.user))  # the admin lets nobody in without an account

    # --- Addresses -----------------------------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        own: list[tuple[str, Callable[..., Any], str]] = [
            ("switch/", self.switch_view, "switch"),
            ("live/", self.live_view, "live"),
            ("<path:object_id>/history/<int:number>/", self.version_view, "version"),
        ]
        wrapped = [
            path(address, self.admin_site.admin_view(view), name=f"subagents_managedsubagent_{name}")
            for address, view, name in own
        ]
        return [*wrapped, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CatalogueChangeList]:
        return CatalogueChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        entry = registry.current().catalogue.by_key(object_id)
        return row(entry) if entry else None

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return dict(switching.ACTIONS) if self.has_change_permission(request) else {}

    def response_action(self, request: HttpRequest, queryset: Any, action_location: Any = None) -> HttpResponse:
        return switching.in_bulk(self, request)

    # --- Views ---------------------------------------------------------------------------------------------
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        self.permit(request, "view" if request.method in {"GET", "HEAD"} else "change")
        try:
            now = registry.current()
        except ConfigRefused as refused:
            return self.refused_page(request, refused)
        context = {
            "title": _("Subagents"),
            "subagents_opts": self.opts,
            "query": request.GET.urlencode(),
            "may_add": self.has_add_permission(request),
            **self.banners(now),
            **live.context(now),
        }
        return super().changelist_view(request, context | (extra_context or {}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one entry with everything it runs with, and the form that changes a managed one."""
        return self._with_entry(request, object_id, editing.change, needs="view")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.permit(request, "add")
        try:
            return editing.add(self, request, registry.current(max_age=0))
        except ConfigRefused as refused:
            return self.refused_page(request, refused)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.permit(request, "delete")
        return self._with_entry(request, object_id, deleting.delete, needs="delete")

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.permit(request, "view")
        return history.versions(self, request, unquote(object_id))

    def version_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        self.permit(request, "view")
        return history.version(self, request, unquote(object_id), number)

    def switch_view(self, request: HttpRequest) -> HttpResponse:
        self.permit(request, "change")
        return switching.one(self, request)

    def live_view(self, request: HttpRequest) -> HttpResponse:
        self.permit(request, "view")
        return live.answer(request)

    def action_checkbox(self, obj: ManagedSubagent) -> Any:
        entry = entry_of(obj)
        title = entry.definition.title
        return checkbox(entry.key, title) if entry.source is Source.MANAGED else lock(title)

    action_checkbox.__dict__.update(_Base.action_checkbox.__dict__)  # the skin's own heading of the column

    # --- What the views share ------------------------------------------------------------------------------
    def permit(self, request: HttpRequest, verb: str, entry: Entry | None = None) -> None:
        """Raises PermissionDenied unless this person may do this, to this entry if one is given."""
        obj = row(entry) if entry else None
        may = {
            "view": self.has_view_permission,
            "change": self.has_change_permission,
            "delete": self.has_delete_permission,
            "add": lambda request, _obj: self.has_add_permission(request),
        }[verb]
        if request.method not in {"GET", "HEAD", "POST"} or not may(request, obj):
            raise PermissionDenied

    def page_context(self, request: HttpRequest, title: object) -> dict[str, Any]:
        request.current_app = self.admin_site.name  # type: ignore[attr-defined]
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "is_unfold": IS_UNFOLD,
        }

    def render(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, title: object, status: int = 200
    ) -> TemplateResponse:
        return TemplateResponse(
            request, f"{TEMPLATES}/{template}", {**self.page_context(request, title), **context}, status=status
        )

    def refused_page(self, request: HttpRequest, refused: ConfigRefused) -> TemplateResponse:
        return self.render(request, "refused.html", {"problems": refused.problems}, title=_("Subagents"), status=503)

    def to_list(self, query: str = "", anchor: str = "") -> HttpResponse:
        """Send back to the list, with the filters it had; the address never leaves this page."""
        answer = redirect("admin:subagents_managedsubagent_changelist")
        filters = QueryDict(query).urlencode()  # read and written anew: nothing but an address's query comes of it
        answer["Location"] += (f"?{filters}" if filters else "") + (f"#{anchor}" if anchor else "")
        return answer

    def banners(self, now: Registry) -> dict[str, Any]:
        """What stands above the list because it concerns more than one entry."""
        entries = now.catalogue.entries
        return {
            "config_refused": now.config_refused,
            "problems": now.problems,
            "entry_problem_count": sum(problem.severity is Severity.ENTRY for problem in now.problems),
            "conflicts": [
                (entry, wording.SOURCES[entry.shadowed_by]) for entry in entries if entry.shadowed_by is not None
            ],
            "unavailable": [
                (entry, wording.say(entry.reason))
                for entry in entries
                if entry.state is State.UNAVAILABLE and entry.reason
            ],
        }

    def _with_entry(
        self, request: HttpRequest, object_id: str, view: Callable[..., HttpResponse], *, needs: str
    ) -> HttpResponse:
        """Look the entry up at this moment and hand it to the view; an address that is nobody's leads to the list."""
        self.permit(request, needs)
        try:
            now = registry.current(max_age=0)
        except ConfigRefused as refused:
            return self.refused_page(request, refused)
        entry = now.catalogue.by_key(unquote(object_id))
        if entry is None:
            name = history.name_of(unquote(object_id))
            if request.method == "POST" and needs == "view" and name and self.has_change_permission(request):
                return editing.gone(self, request, now, name)
            messages.warning(request, _("There is no such subagent, or no longer."))
            return self.to_list()
        self.permit(request, needs if request.method != "POST" else {"view": "change"}.get(needs, needs), entry)
        return view(self, request, now, entry)


def _is_managed(obj: Any) -> bool:
    return obj is None or entry_of(obj).source is Source.MANAGED
