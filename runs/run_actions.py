"""What can be done about one run from its page in the admin: buttons of a form, each a POST of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from runs import raising, services
from runs.continuing import continue_run, may_continue
from runs.errors import NotContinuable, RunNotFound, ThreadBusy, TooManyPending
from runs.refusals import in_words
from runs.statuses import ACTIVE

if TYPE_CHECKING:
    from uuid import UUID

    from django.contrib.admin import AdminSite
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    from runs.models import Run


# The same in both skins, which style only buttons of their own.
_STYLE = "padding: 6px 12px; border: 1px solid currentColor; border-radius: 6px; font-weight: 500; cursor: pointer"


def urls(site: AdminSite) -> list[URLPattern]:
    return [
        path("<uuid:run_id>/cancel/", site.admin_view(cancel), name="runs_run_cancel"),
        path("<uuid:run_id>/continue/", site.admin_view(go_on), name="runs_run_continue"),
    ]


def buttons(run: Run) -> SafeString | str:
    """The buttons for a run as it is; "–" when nothing can be done."""
    wanted: list[tuple[str, str]] = []
    if run.status in ACTIVE:
        wanted.append((reverse("admin:runs_run_cancel", args=[run.pk]), _("Cancel")))
    if may_continue(run):
        wanted.append((reverse("admin:runs_run_continue", args=[run.pk]), _continue_words(run)))
    button = f'<button type="submit" style="{_STYLE}" formnovalidate formmethod="post" formaction="{{}}">{{}}</button> '
    return format_html_join("", button, wanted) or "–"


def _continue_words(run: Run) -> str:
    offered = raising.offered(status=run.status, stop_reason=run.stop_reason, detail=run.stop_detail)
    words = {
        "max_turns": _("Continue with %(n)s turns"),
        "max_tokens": _("Continue with %(n)s tokens"),
        "timeout_seconds": _("Continue with %(n)s s"),
    }
    for name, value in offered.items():
        return words[name] % {"n": f"{value:,}"}
    return _("Continue")


def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    if refused := _refused(request):
        return refused
    try:
        stopped = services.stop_run(run_id=run_id, by=request.user.get_username())
    except RunNotFound:
        return _to_list(request)
    names = ", ".join(one.title or one.agent for one in stopped)
    if stopped:
        messages.success(request, _("Told to stop: %(what)s") % {"what": names})
    else:
        messages.warning(request, _("It had already ended."))
    return HttpResponseRedirect(reverse("admin:runs_run_change", args=[run_id]))


def go_on(request: HttpRequest, run_id: UUID) -> HttpResponse:
    if refused := _refused(request):
        return refused
    page = reverse("admin:runs_run_change", args=[run_id])
    try:
        run = continue_run(run_id=run_id)
    except RunNotFound:
        return _to_list(request)
    except (NotContinuable, ThreadBusy, TooManyPending) as fault:
        messages.error(request, _("It was not continued: %(reason)s") % {"reason": in_words(fault)})
        return HttpResponseRedirect(page)
    link = format_html('<a href="{}">{}</a>', page, str(run_id)[-12:])
    messages.success(request, format_html("{} {}", _("This run goes on from:"), link))
    return HttpResponseRedirect(reverse("admin:runs_run_change", args=[run.pk]))


def _refused(request: HttpRequest) -> HttpResponse | None:
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not request.user.has_perm("runs.change_run"):
        raise PermissionDenied
    return None


def _to_list(request: HttpRequest) -> HttpResponse:
    messages.error(request, _("This run does not exist."))
    return HttpResponseRedirect(reverse("admin:runs_run_changelist"))
