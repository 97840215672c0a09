"""Switching custom agents on and off: one in its row, or several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from subagents import registry, services
from subagents.admin.agents import words
from subagents.admin.agents.editing import by_key
from subagents.admin.switching import report
from subagents.kinds import AGENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest, HttpResponse

    from subagents.admin.agents.page import AgentAdmin
    from subagents.agent_entries import AgentEntry

_ENABLED: Final = {"enable": True, "disable": False}


def in_bulk(page: AgentAdmin, request: HttpRequest) -> HttpResponse:
    """Do the chosen action to the chosen rows."""
    enabled = _ENABLED.get(request.POST.get("action", ""))
    if enabled is None:
        messages.warning(request, _("Choose what shall be done with the selected agents."))
    else:
        _set_enabled(page, request, _chosen(page, request), enabled=enabled)
    return page.to_list(request.GET.urlencode())


def one(page: AgentAdmin, request: HttpRequest) -> HttpResponse:
    """Switch the row that the form names."""
    query = request.POST.get("query", "")
    wanted = next((word for word in ("on", "off") if word in request.POST), None)
    if request.method != "POST" or wanted is None:
        return page.to_list(query)
    entry = by_key(registry.current(fresh=True), request.POST[wanted])
    if entry is None:
        messages.warning(request, _("There is no such custom agent, or no longer."))
        return page.to_list(query)
    _set_enabled(page, request, [entry], enabled=wanted == "on")
    return page.to_list(query, anchor=f"switch-{entry.key}")


# As Django's change list wants them: a function that is never called, because the rows may be in no table.
ACTIONS: Final = {
    "enable": (in_bulk, "enable", gettext_lazy("Enable selected agents")),
    "disable": (in_bulk, "disable", gettext_lazy("Disable selected agents")),
}


def _chosen(page: AgentAdmin, request: HttpRequest) -> list[AgentEntry]:
    """Return the agents whose rows are ticked, or every one of the filtered list when all pages were chosen."""
    if request.POST.get("select_across") == "1":
        found: list[AgentEntry] = page.get_changelist_instance(request).found  # type: ignore[attr-defined]
        return found
    now = registry.current(fresh=True)
    by_keys = {entry.key: entry for entry in now.agents}
    keys = dict.fromkeys(request.POST.getlist(ACTION_CHECKBOX_NAME))
    return [by_keys[key] for key in keys if key in by_keys]


def _set_enabled(page: AgentAdmin, request: HttpRequest, entries: Iterable[AgentEntry], *, enabled: bool) -> None:
    names = [entry.name for entry in entries]
    if not names:
        return
    results = services.set_enabled(AGENT, names, enabled, actor=page.actor(request))
    report(request, results, enabled=enabled, refusal=words.refusal)
