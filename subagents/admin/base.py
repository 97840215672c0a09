"""What the pages of both kinds are made of: which view answers which address, who may do what, how a page is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.contrib import messages
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path

from subagents import registry
from subagents.actor import Actor
from subagents.admin import deleting, editing, history, live, switching
from subagents.admin.changelist import DefinitionChangeList
from subagents.admin.rows import row
from subagents.adminkit import IS_UNFOLD, ModelAdmin
from subagents.errors import ConfigRefused
from subagents.models import VIEW_PROMPT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from django.contrib.auth.models import AbstractBaseUser
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from subagents.admin.forms import DocumentForm
    from subagents.kinds import Kind
    from subagents.registry import Registry
    from subagents.usage import Use

    _Base = ModelAdmin[Any]
else:
    _Base = ModelAdmin


class DefinitionAdmin(_Base):
    """One kind's pages. Works on names, never on a queryset: not every entry is in a table, and broken ones are listed.

    What is the kind's own is said below `kind` and by the methods that raise NotImplementedError.
    """

    list_filter_sheet = False  # unfold: beside the list where there is room
    list_per_page = 50
    search_fields = ["name", "display_name", "description"]
    show_facets = ShowFacets.NEVER  # the filters count entries themselves

    kind: ClassVar[Kind[Any]]
    list_title: ClassVar[Any]
    # Sentences by what they are for: add, new, back, none_such, choose, enable, disable, rows, version, refused.
    texts: ClassVar[Mapping[str, Any]]
    labels: ClassVar[Mapping[str, Any]]  # of the fields
    orders: ClassVar[Mapping[str, Callable[[Any], Any]]]

    # --- The kind's own ------------------------------------------------------------------------------------
    def entries(self, now: Registry) -> Sequence[Any]:
        """Every entry, in the order of the list."""
        raise NotImplementedError

    def in_words(self, field: str, value: object, *, shows_prompt: bool = True) -> str:
        """One value of a document."""
        raise NotImplementedError

    def refusal(self, refused: Exception) -> str:
        """Why something was not done."""
        raise NotImplementedError

    def uses(self, names: Collection[str]) -> Mapping[str, Use]:
        """When those of these names were last used that ever were; one query."""
        raise NotImplementedError

    def make_form(self, now: Registry, base: Mapping[str, Any], *, data: Any = None, **how: Any) -> DocumentForm:
        raise NotImplementedError

    def bearable(self, document: Mapping[str, object]) -> dict[str, Any]:
        """What a form can show of a broken document."""
        raise NotImplementedError

    def form_context(self, form: Any, now: Registry, entry: Any) -> dict[str, Any]:
        """How the form is laid out. `entry`: the one being edited, None for a new one."""
        raise NotImplementedError

    def entry_context(self, request: HttpRequest, now: Registry, entry: Any, form: Any) -> dict[str, Any]:
        return {}

    def copy_context(self, copied: Any) -> dict[str, Any]:
        return {}

    def deletion_context(self, now: Registry, entry: Any) -> dict[str, Any]:
        return {}

    def list_context(self, now: Registry) -> dict[str, Any]:
        return {}

    # --- Who may do what -----------------------------------------------------------------------------------
    def may_read_prompts(self, request: HttpRequest) -> bool:
        return request.user.has_perm(VIEW_PROMPT)

    def actor(self, request: HttpRequest) -> Actor:
        return Actor(user=cast("AbstractBaseUser", request.user))  # the admin lets nobody in without an account

    def permit(self, request: HttpRequest, verb: str, entry: Any = None) -> None:
        """Raises PermissionDenied unless this person may do this, to this entry if one is given."""
        obj = self.row(entry) if entry else None
        may = {
            "view": self.has_view_permission,
            "change": self.has_change_permission,
            "delete": self.has_delete_permission,
            "add": lambda request, _obj: self.has_add_permission(request),
        }[verb]
        if request.method not in {"GET", "HEAD", "POST"} or not may(request, obj):
            raise PermissionDenied

    # --- Addresses -----------------------------------------------------------------------------------------
    def own_urls(self) -> list[tuple[str, Callable[..., Any], str]]:
        """Address, view and name of what Django's own admin does not have."""
        return [
            ("switch/", self.switch_view, "switch"),
            ("live/", self.live_view, "live"),
            ("<path:object_id>/history/<int:number>/", self.version_view, "version"),
        ]

    def get_urls(self) -> list[URLPattern]:
        wrapped = [
            path(address, self.admin_site.admin_view(view), name=f"{self._prefix}_{name}")
            for address, view, name in self.own_urls()
        ]
        return [*wrapped, *super().get_urls()]

    @property
    def _prefix(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def find(self, now: Registry, key: str) -> Any:
        """The entry of an address; None for one that is nobody's."""
        return next((entry for entry in self.entries(now) if entry.key == key), None)

    def row(self, entry: Any) -> Any:
        return row(self.model, entry)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[DefinitionChangeList]:
        return DefinitionChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        entry = self.find(registry.current(), object_id)
        return self.row(entry) if entry else None

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return switching.actions(self) if self.has_change_permission(request) else {}

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
            "title": self.list_title,
            "texts": self.texts,
            "query": request.GET.urlencode(),
            "may_add": self.has_add_permission(request),
            "config_refused": now.config_refused,
            **self.list_context(now),
            **live.context(now),
        }
        return super().changelist_view(request, context | (extra_context or {}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one entry with everything it runs with, and the form that changes it."""
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

    # --- What the views share ------------------------------------------------------------------------------
    def render(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, title: object, status: int = 200
    ) -> TemplateResponse:
        """Show the kind's own template of this name, or the one of both kinds."""
        request.current_app = self.admin_site.name  # type: ignore[attr-defined]
        common = {
            **self.admin_site.each_context(request),
            "title": title,
            "list_title": self.list_title,
            "texts": self.texts,
            "opts": self.opts,
            "media": self.media,
            "is_unfold": IS_UNFOLD,
        }
        templates = [f"admin/subagents/{self.opts.model_name}/{template}", f"admin/subagents/{template}"]
        return TemplateResponse(request, templates, {**common, **context}, status=status)

    def refused_page(self, request: HttpRequest, refused: ConfigRefused) -> TemplateResponse:
        context = {"problems": refused.problems}
        return self.render(request, "refused.html", context, title=self.list_title, status=503)

    def to_list(self, query: str = "", anchor: str = "") -> HttpResponse:
        """Send back to the list, with the filters it had; the address never leaves this page."""
        answer = redirect(f"admin:{self._prefix}_changelist")
        filters = QueryDict(query).urlencode()  # read and written anew: nothing but an address's query comes of it
        answer["Location"] += (f"?{filters}" if filters else "") + (f"#{anchor}" if anchor else "")
        return answer

    def to_entry(self, name: str) -> HttpResponse:
        """Send to the page of the stored definition of this name."""
        return redirect(f"admin:{self._prefix}_change", history.key_of(name))

    def to_key(self, key: str) -> HttpResponse:
        """Send to the page of an entry of any source."""
        return redirect(f"admin:{self._prefix}_change", key)

    def none_such(self, request: HttpRequest) -> HttpResponse:
        messages.warning(request, self.texts["none_such"])
        return self.to_list()

    def _with_entry(
        self, request: HttpRequest, object_id: str, view: Callable[..., HttpResponse], *, needs: str
    ) -> HttpResponse:
        """Look the entry up at this moment and hand it to the view; an address that is nobody's leads to the list."""
        self.permit(request, needs)
        try:
            now = registry.current(max_age=0)
        except ConfigRefused as refused:
            return self.refused_page(request, refused)
        entry = self.find(now, unquote(object_id))
        if entry is None:
            name = history.name_of(unquote(object_id))
            if request.method == "POST" and needs == "view" and name and self.has_change_permission(request):
                return editing.gone(self, request, now, name)
            return self.none_such(request)
        self.permit(request, needs if request.method != "POST" else {"view": "change"}.get(needs, needs), entry)
        return view(self, request, now, entry)
