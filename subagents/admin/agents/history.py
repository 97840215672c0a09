"""The history of one custom agent: every version, who made it, what changed, and each version's whole document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.utils.translation import gettext as _

from subagents import registry, services
from subagents.admin import history
from subagents.admin.agents import words
from subagents.admin.agents.editing import by_key
from subagents.admin.agents.rows import row
from subagents.errors import ConfigRefused
from subagents.kinds import AGENT

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from subagents.admin.agents.page import AgentAdmin
    from subagents.agent_entries import AgentEntry


def versions(page: AgentAdmin, request: HttpRequest, key: str) -> HttpResponse:
    """List the versions of an agent, newest first; also of one that has been deleted."""
    entry, name = _subject(key)
    revisions = services.revisions(AGENT, name) if name else []
    if entry is None and not revisions:
        messages.warning(request, _("There is no such custom agent, or no longer."))
        return page.to_list()
    context = {
        "original": row(entry) if entry else None,
        "entry": entry,
        "key": key,
        "versions": history.versions_of(revisions, labels=words.FIELDS),
    }
    title = _("History of %(name)s") % {"name": entry.agent.title if entry else name}
    return page.render(request, "history.html", context, title=title)


def version(page: AgentAdmin, request: HttpRequest, key: str, number: int) -> HttpResponse:
    """Show the whole document of one version."""
    entry, name = _subject(key)
    listed = history.versions_of(services.revisions(AGENT, name) if name else [], labels=words.FIELDS)
    at = next((index for index, item in enumerate(listed) if item.revision.number == number), None)
    if at is None:
        messages.warning(request, _("There is no such version."))
        return page.to_list()
    before = listed[at + 1].revision.document if at + 1 < len(listed) else None
    document = listed[at].revision.document if isinstance(listed[at].revision.document, dict) else {}
    may_read = page.may_read_prompts(request)
    raw = str(document.get("unreadable", ""))
    lines = history.lines_of(document, before, shows_prompt=may_read, labels=words.FIELDS, say=words.value_in_words)
    context = {
        "original": row(entry) if entry else None,
        "entry": entry,
        "key": key,
        "version": listed[at],
        "lines": () if raw else lines,
        "raw": raw if may_read else "",
        "is_unreadable": bool(raw),
        "prompt": str(document.get("system_prompt", "")) if may_read else "",
        "may_read_prompt": may_read,
        "newer": listed[at - 1].revision.number if at else None,
        "older": listed[at + 1].revision.number if before is not None else None,
    }
    title = _("%(name)s, version %(number)s") % {"name": name, "number": number}
    return page.render(request, "version.html", context, title=title)


def _subject(key: str) -> tuple[AgentEntry | None, str | None]:
    try:
        entry = by_key(registry.current(), key)
    except ConfigRefused:
        entry = None
    return entry, entry.name if entry is not None else history.name_of(key)
