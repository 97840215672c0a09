"""The pages a person opens. What happens on them afterwards comes over the socket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import get_script_prefix, reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from runs.models import Run, Thread
from runs.services import LEAD_AGENT, MAX_TEXT_LENGTH
from runs.web.answers import signed_out
from runs.web.strings import page_strings
from runs.web.surroundings import Surroundings, surroundings
from runs.web.threads import list_threads

if TYPE_CHECKING:
    from uuid import UUID

THEMES = ("light", "dark")
THEME_COOKIE = "theme"
THEME_SECONDS = 365 * 86_400


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    return redirect("chat")


@never_cache
@login_required
@require_GET
def new_chat(request: HttpRequest) -> HttpResponse:
    return _chat(request, None)


@never_cache
@login_required
@require_GET
def thread_chat(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    thread = Thread.objects.visible_to(request.user).select_related("parent_run").filter(pk=thread_id).first()
    if thread is None:
        raise Http404
    return _chat(request, thread)


@never_cache
@require_GET
def thread_rail(request: HttpRequest) -> HttpResponse:
    """The list of conversations as a fragment, for pages that stay open."""
    if not request.user.is_authenticated:
        return signed_out()
    current = request.GET.get("current", "")
    return render(request, "chat/_threads.html", {"threads": list_threads(request.user), "current": current})


@login_required
@require_GET
def connect_model(request: HttpRequest) -> HttpResponse:
    return render(request, "chat/connect_model.html")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light or dark in a cookie, so that the server paints the right one at once."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        target = reverse("chat")
    response = HttpResponseRedirect(target)
    if (wanted := request.POST.get("theme")) in THEMES:
        response.set_cookie(
            THEME_COOKIE,
            wanted,
            max_age=THEME_SECONDS,
            samesite="Lax",
            secure=request.is_secure(),
            httponly=True,
        )
    return response


def _chat(request: HttpRequest, thread: Any) -> HttpResponse:
    around = surroundings()
    before = _before(thread)
    context = {
        "thread": thread,
        "current": str(thread.pk) if thread else "",
        "parent_thread": thread.parent_run.thread_id if thread and thread.parent_run else None,
        "threads": list_threads(request.user),
        "around": around,
        "examples": _examples(),
        "max_text": MAX_TEXT_LENGTH,
        "agent": before.agent,
        "page": _page(thread, around, before),
    }
    return render(request, "chat/chat.html", context)


@dataclass(frozen=True, slots=True)
class _Before:
    """What the thread's newest message was sent with: the next one is too, unless the person chooses otherwise."""

    agent: str = LEAD_AGENT
    delegation: bool = True


def _before(thread: Any) -> _Before:
    newest = Run.objects.filter(thread_id=thread.pk).order_by("-created_at", "-pk") if thread else Run.objects.none()
    found = newest.values_list("agent", "options").first()
    return _Before(found[0], found[1].get("subagent_enabled") is not False) if found else _Before()


def _page(thread: Any, around: Surroundings, before: _Before) -> dict[str, Any]:
    """What the modules need to know, read from a JSON block: addresses, limits, words."""
    return {
        "thread": str(thread.pk) if thread else None,
        "speaker": _speaker(thread),
        "lead": LEAD_AGENT,
        "agent": before.agent,
        "delegation": before.delegation,
        "agents": {
            agent.name: {
                "label": agent.label,
                "about": agent.about,
                "callables": agent.callables,
                "off": agent.delegation_off is not None,
            }
            for agent in around.agents
        },
        "now": timezone.now().isoformat(),
        "language": get_language(),
        "max_text": MAX_TEXT_LENGTH,
        "max_total": around.max_total,
        "max_concurrent": around.max_concurrent,
        "urls": {
            "chat": reverse("chat"),
            "start": reverse("chat-start"),
            "rail": reverse("chat-rail"),
            "thread": reverse("chat-thread", args=[thread.pk]) if thread else None,
            "socket": f"{get_script_prefix()}ws/threads/{thread.pk}/" if thread else None,
        },
        "strings": page_strings(),
    }


def _speaker(thread: Any) -> str:
    """The name of the subagent whose thread this is; empty for a conversation with a lead."""
    run = thread.runs.order_by("created_at").first() if thread and thread.parent_run_id else None
    return str(run.definition.get("display_name") or run.agent) if run else ""


def _examples() -> list[str]:
    return [
        _(
            "Research three open-source message queues in parallel and write one comparison table with a"
            " recommendation."
        ),
        _("Plan a two-day workshop: one subagent drafts the agenda, one the exercises, one the invitation."),
        _("Write a short report on the files in the workspace: what is there, what is missing, what to do next."),
    ]
