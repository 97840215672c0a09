"""The page that deletes a stored definition of either kind, and says first what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.utils.translation import gettext as _

from subagents import services
from subagents.admin.columns import state_badge
from subagents.errors import StaleVersion, SubagentsError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from subagents.admin.base import DefinitionAdmin
    from subagents.registry import Registry


def delete(page: DefinitionAdmin, request: HttpRequest, now: Registry, entry: Any) -> HttpResponse:
    """Ask, or do it when the answer came with the version that was looked at."""
    is_stale = False
    if request.method == "POST":
        version = request.POST.get("version", "")
        try:
            services.delete(page.kind, entry.name, expected_version=version, actor=page.actor(request))
        except StaleVersion:
            is_stale = True
        except SubagentsError as refused:
            messages.error(request, page.refusal(refused))
            return page.to_list()
        else:
            messages.success(request, _("%(name)s was deleted.") % {"name": entry.item.title})
            return page.to_list()
    context = {
        "original": page.row(entry),
        "entry": entry,
        "state_badge": state_badge(entry.state),
        "use": page.uses({entry.name}).get(entry.name) if entry.shadowed_by is None else None,
        "is_stale": is_stale,
        **page.deletion_context(now, entry),
    }
    title = _("Delete %(name)s") % {"name": entry.item.title}
    return page.render(request, "delete.html", context, title=title, status=409 if is_stale else 200)
