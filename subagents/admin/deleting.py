"""The page that deletes a managed subagent, and says first who still names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.utils.translation import gettext as _

from subagents import services, usage, wording
from subagents.admin.columns import source_badge, state_badge
from subagents.admin.rows import row
from subagents.errors import StaleVersion, SubagentsError
from subagents.kinds import SUBAGENT

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from subagents.admin.page import CatalogueAdmin
    from subagents.catalogue import Entry
    from subagents.registry import Registry


def delete(page: CatalogueAdmin, request: HttpRequest, now: Registry, entry: Entry) -> HttpResponse:
    """Ask, or do it when the answer came with the version that was looked at."""
    is_stale = False
    if request.method == "POST":
        try:
            services.delete(
                SUBAGENT,
                entry.name,
                expected_version=request.POST.get("version", ""),
                actor=page.actor(request),
            )
        except StaleVersion:
            is_stale = True
        except SubagentsError as refused:
            messages.error(request, wording.refusal(refused))
            return page.to_list()
        else:
            messages.success(request, _("%(name)s was deleted.") % {"name": entry.definition.title})
            return page.to_list()
    heir = next((other for other in now.catalogue.entries if other.name == entry.name and other is not entry), None)
    context = {
        "original": row(entry),
        "entry": entry,
        "source_badge": source_badge(entry.source),
        "state_badge": state_badge(entry.state),
        "named_by": services.named_by(entry.name),
        "use": usage.last_used({entry.name}).get(entry.name) if entry.shadowed_by is None else None,
        "is_held_by_another": heir is not None,
        "is_stale": is_stale,
    }
    title = _("Delete %(name)s") % {"name": entry.definition.title}
    return page.render(request, "delete.html", context, title=title, status=409 if is_stale else 200)
