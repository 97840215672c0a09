"""The page of API keys: everybody makes, sees and revokes their own, administrators see and revoke all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _

from access import keys
from access.models import ApiKey
from deerflow_site.keys_form import STATES, KeyForm
from subagents.adminkit import IS_UNFOLD, ModelAdmin, action, display

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

    _Base = ModelAdmin[ApiKey]
else:
    _Base = ModelAdmin

if IS_UNFOLD:
    from unfold import widgets


class StaffKeyForm(KeyForm):
    """The form in the dress of the admin's skin."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if IS_UNFOLD:
            self._dress("scopes", widgets.UnfoldAdminCheckboxSelectMultipleWidget())
            self._dress("days", widgets.UnfoldAdminSelectWidget())

    def _dress(self, name: str, widget: Any) -> None:
        field: Any = self.fields[name]
        field.widget = widget
        widget.choices = field.choices


@admin.register(ApiKey)
class ApiKeyAdmin(_Base):
    """Rows are never changed or deleted: what was revoked stays as a trace."""

    form = StaffKeyForm
    search_fields = ["name", "prefix", "owner__username"]
    list_select_related = ["owner"]
    list_per_page = 50
    ordering = ["-created_at"]
    actions = ["revoke"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("access.change_apikey")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        return keys.keys_of(request.user).select_related("owner").order_by(*self.ordering)

    def get_list_display(self, request: HttpRequest) -> Any:
        owner = ["owner"] if request.user.has_perm("access.all_keys") else []
        revoking = ["revoke_link"] if self.has_revoke_permission(request) else []
        return ["named", *owner, "shown_prefix", "may", "state", "last_use", "ends", *revoking]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ["name", "scopes", "days"]
        return ["name", "owner", "shown_prefix", "may", "state", "created_at", "ends", "last_use"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [] if obj is None else self.get_fields(request, obj)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        made = super().get_form(request, obj, change, **kwargs)
        made.owner = request.user  # type: ignore[attr-defined] # a class of this request alone
        return made

    def get_urls(self) -> Any:
        revoking = self.admin_site.admin_view(self.revoke_view)
        return [path("<path:object_id>/revoke/", revoking, name="access_apikey_revoke"), *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        # A new key is shown whatever was pressed, so there is one button.
        context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, *args, **kwargs)

    # --- Making ------------------------------------------------------------------------------------------------
    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        row, made = form.make()
        obj.__dict__.update(row.__dict__)
        request.made_key = made  # type: ignore[attr-defined] # lives as long as this answer, and is stored nowhere

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """Show the key on the answer itself: a redirect would have to keep it somewhere."""
        context = {"made": request.made_key, "key": obj, "title": _("Key made")}  # type: ignore[attr-defined]
        answer = self._page(request, "made", context)
        add_never_cache_headers(answer)
        return answer

    # --- Revoking ----------------------------------------------------------------------------------------------
    @action(description=_("Revoke selected keys"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        revoked = sum(self._revoke(request, key) for key in chosen)
        text = ngettext("%(count)d key revoked.", "%(count)d keys revoked.", revoked) % {"count": revoked}
        self.message_user(request, text, messages.SUCCESS)

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask first: a key that was revoked never works again."""
        key = self.get_object(request, unquote(object_id))
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        if key is None:
            raise Http404
        if request.method != "POST":
            return self._page(request, "revoke", {"key": key, "title": _("Revoke this key?")})
        if self._revoke(request, key):
            text = _("The key %(name)s is revoked. Whatever still uses it is refused from now on.")
            self.message_user(request, text % {"name": key.name}, messages.SUCCESS)
        return redirect("admin:access_apikey_changelist")

    def _revoke(self, request: HttpRequest, key: ApiKey) -> bool:
        revoked = keys.revoke(key.pk)
        if revoked:
            self.log_change(request, key, "Revoked.")
        return revoked

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any]) -> TemplateResponse:
        request.current_app = self.admin_site.name
        base = {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media, "is_unfold": IS_UNFOLD}
        base["list_title"] = _("API keys")
        return TemplateResponse(request, f"admin/access/apikey/{name}.html", base | context)

    # --- Columns -----------------------------------------------------------------------------------------------
    @display(description=_("name"), ordering="name")
    def named(self, key: ApiKey) -> str:
        return key.name or "–"

    @display(description=_("key"), ordering="prefix")
    def shown_prefix(self, key: ApiKey) -> SafeString:
        return format_html('<code class="ak-key">{}…</code>', key.prefix)

    @display(description=_("scopes"))
    def may(self, key: ApiKey) -> str:
        return ", ".join(map(str, key.scopes))

    @display(description=_("state"), label={"success": "success", "warning": "warning", "danger": "danger"})
    def state(self, key: ApiKey) -> tuple[str, str]:
        colour, words = STATES[key.state(timezone.now())]
        return colour, str(words)

    @display(description=_("last used"), ordering="last_used_at")
    def last_use(self, key: ApiKey) -> Any:
        return key.last_used_at or gettext("never")

    @display(description=_("expires"), ordering="expires_at")
    def ends(self, key: ApiKey) -> Any:
        return key.expires_at or pgettext("expiry of an API key", "never")

    @display(description=_("revoke"))
    def revoke_link(self, key: ApiKey) -> SafeString | str:
        if key.revoked_at is not None:
            return "–"
        address = reverse("admin:access_apikey_revoke", args=[key.pk])
        label = _("Revoke %(name)s") % {"name": key.name}
        return format_html('<a class="ak-revoke" href="{}" aria-label="{}">{}</a>', address, label, _("Revoke"))
