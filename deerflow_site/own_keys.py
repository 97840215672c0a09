"""Everybody's page of their own API keys, also for those who may not enter the admin. The rules are the admin's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from access import keys
from access.models import ApiKey
from deerflow_site.keys_form import STATES, KeyForm

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_UNPROCESSABLE = 422
_LOOKS = {"valid": "ok", "expired": "warn", "revoked": "idle"}  # of `.st`


class OwnKeyForm(KeyForm):
    """The form for whoever is signed in."""

    def __init__(self, data: Any, *, owner: Any) -> None:
        self.owner = owner
        super().__init__(data)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def own_keys(request: HttpRequest) -> HttpResponse:
    """List the person's keys; a POST makes one and shows it on the answer itself, which is kept nowhere."""
    if request.method != "POST":
        return _page(request, OwnKeyForm(None, owner=request.user))
    if not _may_make(request):
        raise PermissionDenied
    form = OwnKeyForm(request.POST, owner=request.user)
    if not form.is_valid():
        return _page(request, form, status=_UNPROCESSABLE)
    row, made = form.make()
    _log(request, row, ADDITION, "Made.")
    return _page(request, OwnKeyForm(None, owner=request.user), made=made, key=row)


@never_cache
@login_required
@require_POST
def revoke(request: HttpRequest, number: int) -> HttpResponse:
    """Make one of the person's own keys useless; a key of somebody else does not exist here."""
    if not _may_revoke(request):
        raise PermissionDenied
    key = ApiKey.objects.filter(owner_id=request.user.pk, pk=number).first()
    if key is None:
        raise Http404
    if keys.revoke(key.pk):
        _log(request, key, CHANGE, "Revoked.")
        text = _("The key %(name)s is revoked. Whatever still uses it is refused from now on.")
        messages.success(request, text % {"name": key.name})
    return redirect("own-keys")


def _page(request: HttpRequest, form: OwnKeyForm, *, status: int = 200, **more: Any) -> HttpResponse:
    now = timezone.now()
    rows = ApiKey.objects.filter(owner_id=request.user.pk).order_by("-created_at")
    context = {
        "form": form,
        "keys": [(key, _LOOKS[state], STATES[state][1]) for key in rows for state in [key.state(now)]],
        "may_make": _may_make(request),
        "may_revoke": _may_revoke(request),
        **more,
    }
    return render(request, "account/keys.html", context, status=status)


def _may_make(request: HttpRequest) -> bool:
    return request.user.has_perm("access.add_apikey")


def _may_revoke(request: HttpRequest) -> bool:
    return request.user.has_perm("access.change_apikey")


def _log(request: HttpRequest, key: ApiKey, action: int, what: str) -> None:
    """As the admin notes it."""
    LogEntry.objects.log_actions(request.user.pk, [key], action, change_message=what, single_object=True)  # type: ignore[call-overload]
