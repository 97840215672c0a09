"""The Custom agents page of the admin: the list, and which view answers which address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext_lazy as _

from subagents import registry
from subagents.admin import live
from subagents.admin.agents import deleting, editing, history, preview, switching
from subagents.admin.agents.changelist import AgentChangeList, AgentStateFilter
from subagents.admin.agents.columns import AgentColumns
from subagents.admin.agents.rows import row
from subagents.adminkit import IS_UNFOLD, ModelAdmin
from subagents.errors import ConfigRefused
from subagents.models import VIEW_PROMPT, CustomAgent
from subagents.services import Actor

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    _Base = ModelAdmin[CustomAgent]
else:
    _Base = ModelAdmin

TEMPLATES = "admin/subagents/customagent"


@admin.register(CustomAgent)
class AgentAdmin(AgentColumns, _Base):
    """Works on names, never on a queryset: agents may be kept in files, and broken ones are listed too."""

    list_display = ["agent", "state", "model_in_force", "scope", "last_use", "updated"]
    list_display_links = ["agent"]
    list_filter = [AgentStateFilter]
    list_filter_sheet = False  # unfold: beside the list where there is room
    list_per_page = 50
    search_fields = ["name", "display_name", "description"]
    search_help_text = _("Search by name or by description")
    show_facets = ShowFacets.NEVER  # the filter counts agents itself

    class Media:
        css = {"all": ["subagents/catalogue.css", "subagents/forms.css", "subagents/agents.css"]}

    def actor(self, request: HttpRequest) -> Actor:
        return Actor(user=request.user)  # type: ignore[arg-type]

    def may_read_prompts(self, request: HttpRequest) -> bool:
        return request.user.has_perm(VIEW_PROMPT)

    # --- Addresses -----------------------------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        own: list[tuple[str, Callable[..., Any], str]] = [
            ("switch/", self.switch_view, "switch"),
            ("live/", self.live_view, "live"),
            ("reach/", self.reach_view, "reach"),
            ("<path:object_id>/history/<int:number>/", self.version_view, "version"),
        ]
        wrapped = [
            path(address, self.admin_site.admin_view(view), name=f"subagents_customagent_{name}")
            for address, view, name in own
        ]
        return [*wrapped, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[AgentChangeList]:
        return AgentChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        entry = editing.by_key(registry.current(), object_id)
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
            "title": _("Custom agents"),
            "query": request.GET.urlencode(),
            "config_refused": now.config_refused,
            "is_empty": not now.agents,
            "may_add": self.has_add_permission(request),
            **live.context(now),
        }
        return super().changelist_view(request, context | (extra_context or {}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one agent with whom it may call, and the form that changes it."""
        self.permit(request, "change" if request.method == "POST" else "view")
        return self._with_entry(request, object_id, editing.change)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.permit(request, "add")
        try:
            return editing.add(self, request, registry.current(fresh=True))
        except ConfigRefused as refused:
            return self.refused_page(request, refused)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.permit(request, "delete")
        return self._with_entry(request, object_id, deleting.delete)

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

    def reach_view(self, request: HttpRequest) -> HttpResponse:
        self.permit(request, "view")
        return preview.answer(request)

    # --- What the views share ------------------------------------------------------------------------------
    def permit(self, request: HttpRequest, verb: str) -> None:
        """Raises PermissionDenied unless this person may do this."""
        may = {
            "view": self.has_view_permission,
            "change": self.has_change_permission,
            "delete": self.has_delete_permission,
            "add": self.has_add_permission,
        }[verb]
        if request.method not in {"GET", "HEAD", "POST"} or not may(request):
            raise PermissionDenied

    def render(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, title: object, status: int = 200
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name  # type: ignore[attr-defined]
        common = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "is_unfold": IS_UNFOLD,
        }
        return TemplateResponse(request, f"{TEMPLATES}/{template}", {**common, **context}, status=status)

    def refused_page(self, request: HttpRequest, refused: ConfigRefused) -> TemplateResponse:
        context = {"problems": refused.problems}
        return self.render(request, "refused.html", context, title=_("Custom agents"), status=503)

    def to_list(self, query: str = "", anchor: str = "") -> HttpResponse:
        """Send back to the list, with the filters it had; the address never leaves this page."""
        answer = redirect("admin:subagents_customagent_changelist")
        answer["Location"] += (f"?{query}" if query else "") + (f"#{anchor}" if anchor else "")
        return answer

    def _with_entry(self, request: HttpRequest, object_id: str, view: Callable[..., HttpResponse]) -> HttpResponse:
        """Look the agent up at this moment and hand it to the view; an address that is nobody's leads to the list."""
        try:
            now = registry.current(fresh=True)
        except ConfigRefused as refused:
            return self.refused_page(request, refused)
        entry = editing.by_key(now, unquote(object_id))
        if entry is None:
            messages.warning(request, _("There is no such custom agent, or no longer."))
            return self.to_list()
        return view(self, request, now, entry)
