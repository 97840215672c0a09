"""Switching stored definitions of either kind on and off: one in its row, or several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.utils.translation import ngettext

from subagents import registry, services, wording
from subagents.definitions import Source
from subagents.errors import SubagentsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest, HttpResponse

    from subagents.admin.base import DefinitionAdmin

_ENABLED: Final = {"enable": True, "disable": False}


def actions(page: DefinitionAdmin) -> dict[str, Any]:
    """As Django's change list wants them: a function that is never called, because the rows may be in no table."""
    return {name: (in_bulk, name, page.texts[name]) for name in _ENABLED}


def in_bulk(page: DefinitionAdmin, request: HttpRequest) -> HttpResponse:
    """Do the chosen action to the chosen rows. Rows that are read-only are left out, and that is said."""
    enabled = _ENABLED.get(request.POST.get("action", ""))
    if enabled is None:
        messages.warning(request, page.texts["choose"])
        return page.to_list(request.GET.urlencode())
    chosen = _chosen(page, request)
    managed = [entry for entry in chosen if entry.source is Source.MANAGED]
    # "Select all" means all that can be selected; only rows that were named one by one are missed.
    left_out = 0 if request.POST.get("select_across") == "1" else len(chosen) - len(managed)
    if left_out:
        text = ngettext(
            "%(count)s row was left out: built-in and config.yaml subagents are read-only.",
            "%(count)s rows were left out: built-in and config.yaml subagents are read-only.",
            left_out,
        )
        messages.warning(request, text % {"count": left_out})
    if managed:
        _set_enabled(page, request, managed, enabled=enabled)
    return page.to_list(request.GET.urlencode())


def one(page: DefinitionAdmin, request: HttpRequest) -> HttpResponse:
    """Switch the row that the form names. A read-only row is refused."""
    query = request.POST.get("query", "")
    wanted = next((word for word in ("on", "off") if word in request.POST), None)
    if request.method != "POST" or wanted is None:
        return page.to_list(query)
    entry = page.find(registry.current(max_age=0), request.POST[wanted])
    if entry is None:
        messages.warning(request, page.texts["none_such"])
        return page.to_list(query)
    if entry.source is not Source.MANAGED:
        raise PermissionDenied
    _set_enabled(page, request, [entry], enabled=wanted == "on")
    return page.to_list(query, anchor=f"switch-{entry.key}")


def _chosen(page: DefinitionAdmin, request: HttpRequest) -> list[Any]:
    """Return the entries whose rows are ticked, or every entry of the filtered list when all pages were chosen."""
    if request.POST.get("select_across") == "1":
        found: list[Any] = page.get_changelist_instance(request).found  # type: ignore[attr-defined]
        return found
    by_key = {entry.key: entry for entry in page.entries(registry.current(max_age=0))}
    keys = dict.fromkeys(request.POST.getlist(ACTION_CHECKBOX_NAME))
    return [by_key[key] for key in keys if key in by_key]


def _set_enabled(page: DefinitionAdmin, request: HttpRequest, entries: Iterable[Any], *, enabled: bool) -> None:
    """Switch them and say what came of it: what changed, what was so already, what was refused."""
    names = [entry.name for entry in entries]
    results = services.set_enabled(page.kind, names, enabled, actor=page.actor(request))
    changed = [name for name, result in results.items() if result == "changed"]
    unchanged = sum(result == "unchanged" for result in results.values())
    facts = {"count": len(changed), "names": wording.shortlist(changed)}
    if changed and enabled:
        text = ngettext("%(names)s is enabled now.", "%(count)s are enabled now: %(names)s.", len(changed))
        messages.success(request, text % facts)
    elif changed:
        text = ngettext("%(names)s is disabled now.", "%(count)s are disabled now: %(names)s.", len(changed))
        messages.success(request, text % facts)
    if unchanged:
        text = ngettext("%(count)s was so already.", "%(count)s were so already.", unchanged)
        messages.info(request, text % {"count": unchanged})
    for name, result in results.items():
        if isinstance(result, SubagentsError):
            messages.error(request, f"{name}: {page.refusal(result)}")
