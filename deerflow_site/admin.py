"""The admin site: its names, its sidebar, and users and groups in the same skin as everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from deerflow_site import keys_page  # noqa: F401 - registers itself
from deerflow_site.login import LoginForm
from deerflow_site.people import GuardedUserAdmin
from subagents.adminkit import IS_UNFOLD, ModelAdmin

if TYPE_CHECKING:
    from django.db.models import Model
    from django.http import HttpRequest

admin.site.site_header = _("Subagents")
admin.site.site_title = _("Subagents")
admin.site.index_title = _("Overview")
admin.site.login_form = LoginForm

# Which sidebar group an app's pages stand in.
_GROUPS = ((_("Operate"), ("runs", "django_q")), (_("Configure"), ("subagents",)), (_("Access"), ("auth", "access")))
_ICONS = {
    "managedsubagent": "account_tree",
    "customagent": "face",
    "remoteagent": "cloud",
    "thread": "forum",
    "run": "play_circle",
    "workerheartbeat": "memory",
    "apikey": "key",
    "user": "person",
    "group": "group",
    "ormq": "list",
    "schedule": "schedule",
    "success": "check_circle",
    "failure": "error",
}


def favicon(_request: HttpRequest) -> str:
    return static("runs/icon.svg")


def stylesheet(_request: HttpRequest) -> str:
    return static("deerflow_site/admin.css")


def _sentence_case(name: str) -> str:
    return name[:1].upper() + name[1:]  # str.capitalize would make "Api keys"


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The sidebar: every registered page this person may see, in our groups."""
    pages = {
        model: {
            "title": _sentence_case(str(model._meta.verbose_name_plural)),
            "icon": _ICONS.get(str(model._meta.model_name), "circle"),
            "link": reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"),
        }
        for model, model_admin in admin.site._registry.items()
        if model_admin.has_module_permission(request) and model_admin.has_view_permission(request)
    }
    overview = {"title": _("Overview"), "icon": "home", "link": reverse("admin:index")}
    groups: list[dict[str, Any]] = [{"title": None, "items": [overview]}]
    for title, labels in _GROUPS:
        items = [page for label in labels for model, page in pages.items() if model._meta.app_label == label]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


if IS_UNFOLD:
    from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

    _USER_FORMS: dict[str, Any] = {
        "form": UserChangeForm,
        "add_form": UserCreationForm,
        "change_password_form": AdminPasswordChangeForm,
    }
else:
    _USER_FORMS = {}


def _in_our_skin(model: type[Model], stock: type[admin.ModelAdmin[Any]], forms: dict[str, Any]) -> None:
    if admin.site.is_registered(model):
        admin.site.unregister(model)
    admin.site.register(model, type(stock.__name__, (stock, ModelAdmin), forms))


_in_our_skin(User, GuardedUserAdmin, _USER_FORMS)
_in_our_skin(Group, GroupAdmin, {})
for _model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(_model):
        _in_our_skin(_model, type(admin.site._registry[_model]), {})
