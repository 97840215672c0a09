"""The page that deletes a custom agent, and says first what becomes of its conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.utils.translation import gettext as _

from subagents import services, usage
from subagents.admin.agents import words
from subagents.admin.agents.rows import row
from subagents.admin.columns import state_badge
from subagents.errors import StaleVersion, SubagentsError
from subagents.kinds import AGENT

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from subagents.admin.agents.page import AgentAdmin
    from subagents.agent_entries import AgentEntry
    from subagents.registry import Registry


def delete(page: AgentAdmin, request: HttpRequest, now: Registry, entry: AgentEntry) -> HttpResponse:
    """Ask, or do it when the answer came with the version that was looked at."""
    is_stale = False
    if request.method == "POST":
        version = request.POST.get("version", "")
        try:
            services.delete(AGENT, entry.name, expected_version=version, actor=page.actor(request))
        except StaleVersion:
            is_stale = True
        except SubagentsError as refused:
            messages.error(request, words.refusal(refused))
            return page.to_list()
        else:
            messages.success(request, _("%(name)s was deleted.") % {"name": entry.agent.title})
            return page.to_list()
    context = {
        "original": row(entry),
        "entry": entry,
        "state_badge": state_badge(entry.state),
        "use": usage.agents_last_used({entry.name}).get(entry.name),
        "is_stale": is_stale,
    }
    title = _("Delete %(name)s") % {"name": entry.agent.title}
    return page.render(request, "delete.html", context, title=title, status=409 if is_stale else 200)
