"""The page of one entry, and the forms that make, change and repair managed ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from subagents import registry, services, usage, wording
from subagents.admin import details, layout, live
from subagents.admin.columns import source_badge, state_badge
from subagents.admin.forms import SubagentForm
from subagents.admin.merging import Merged, merge
from subagents.admin.offered import offered
from subagents.admin.rows import row
from subagents.definitions import Source, row_key
from subagents.errors import InvalidDefinition, NameTaken, StaleVersion, SubagentsError
from subagents.kinds import SUBAGENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from subagents.admin.page import CatalogueAdmin
    from subagents.catalogue import Entry
    from subagents.definitions import Definition
    from subagents.registry import Registry


def change(page: CatalogueAdmin, request: HttpRequest, now: Registry, entry: Entry) -> HttpResponse:
    """Show an entry; with the form where it is a managed one and this person may change it."""
    if entry.source is not Source.MANAGED or not page.has_change_permission(request):
        return _shown(page, request, now, entry, form=None)
    if entry.problems:
        return _repair(page, request, now, entry)
    base = SUBAGENT.to_plain(entry.definition)
    if request.method != "POST":
        form = _form(page, request, now, base, version=entry.definition.version)
        return _shown(page, request, now, entry, form=form)
    form = _form(page, request, now, base, data=request.POST)
    return _change(page, request, now, entry, form)


def _change(
    page: CatalogueAdmin, request: HttpRequest, now: Registry, entry: Entry, form: SubagentForm
) -> HttpResponse:
    """Save what was sent, if it is whole and nobody else saved in between."""
    if not form.is_valid():
        return _shown(page, request, now, entry, form=form)
    version, changes = form.cleaned_data["version"], form.changes()
    if not changes and version == entry.definition.version:
        messages.info(request, _("Nothing was changed."))
        return _after(page, request, entry.definition)
    try:
        stored = _stored(
            form,
            lambda: services.update(SUBAGENT, entry.name, changes, expected_version=version, actor=page.actor(request)),
        )
    except StaleVersion as stale:
        return _stale(page, request, form, stale)
    if stored is None:
        return _shown(page, request, now, entry, form=form)
    messages.success(request, _("%(name)s was saved.") % {"name": stored.title})
    return _after(page, request, stored)


def add(page: CatalogueAdmin, request: HttpRequest, now: Registry) -> HttpResponse:
    """Make a managed subagent: from nothing, or as a copy of the entry that the address names with `from`."""
    copied = now.catalogue.by_key(request.GET.get("from", ""))
    if copied is not None and copied.problems:
        copied = None
    base: dict[str, Any] = dict(services.document_of(copied)) if copied else {}
    # Whoever may not read prompts copies one unseen; a new one they write themselves.
    hides_prompt = copied is not None and not page.may_read_prompts(request)
    sent = request.POST if request.method == "POST" else None
    form = SubagentForm(sent, offered=offered(now), base=base, hides_prompt=hides_prompt)
    if sent is not None and form.is_valid():
        stored = _stored(form, lambda: services.create(SUBAGENT, form.document(), actor=page.actor(request)))
        if stored is not None:
            messages.success(request, _("%(name)s was made.") % {"name": stored.title})
            return _after(page, request, stored)
    context = {"copied": copied, "copied_source": source_badge(copied.source) if copied else ""}
    return _adding(page, request, now, form, context)


def _stored(form: SubagentForm, save: Callable[[], Definition]) -> Definition | None:
    """Save. What is refused shows on the form; only a stale version is the caller's to answer."""
    try:
        return save()
    except StaleVersion:
        raise
    except NameTaken as taken:
        form.add_error("name", wording.refusal(taken))
    except InvalidDefinition as refused:
        form.add_faults(refused)
    except SubagentsError as refused:
        form.add_error(None, wording.refusal(refused))
    return None


def _adding(
    page: CatalogueAdmin, request: HttpRequest, now: Registry, form: SubagentForm, context: dict[str, Any]
) -> HttpResponse:
    context = {
        "form": form,
        "groups": layout.groups(form, None, now.config),
        "is_new": True,
        "hides_prompt": "system_prompt" not in form.fields,
        "may_change": True,
        **context,
    }
    status = context.pop("status", None) or _status(form)
    return page.render(request, "entry.html", context, title=_("Add subagent"), status=status)


def _shown(
    page: CatalogueAdmin,
    request: HttpRequest,
    now: Registry,
    entry: Entry,
    *,
    form: SubagentForm | None,
    status: int | None = None,
    **more: Any,
) -> HttpResponse:
    may_read_prompt = page.may_read_prompts(request)
    context = {
        "original": row(entry),
        "entry": entry,
        "source_badge": source_badge(entry.source),
        "state_badge": state_badge(entry.state),
        "reason": wording.say(entry.reason) if entry.reason else "",
        "warnings": [wording.say(note) for note in entry.warnings],
        "config_refused": now.config_refused,
        "layer_groups": details.groups(entry),
        "digest": details.digest(entry),
        "form": form,
        "groups": layout.groups(form, entry, now.config) if form else (),
        "may_read_prompt": may_read_prompt,
        "hides_prompt": form is not None and "system_prompt" not in form.fields,
        "prompt": entry.definition.system_prompt if may_read_prompt and form is None else "",
        "named_by": services.named_by(entry.name) if entry.shadowed_by is None else (),
        "newest_runs": _newest_runs(request, entry),
        "may_change": form is not None,
        "may_delete": entry.source is Source.MANAGED and page.has_delete_permission(request),
        "may_copy": page.has_add_permission(request) and not entry.problems,
        **live.context(now),
        **more,
    }
    status = status if status is not None else _status(form)
    return page.render(request, "entry.html", context, title=entry.definition.title, status=status)


def _repair(page: CatalogueAdmin, request: HttpRequest, now: Registry, entry: Entry) -> HttpResponse:
    """Show what a broken row holds and what is wrong with it; a saved form replaces the whole of it."""
    found = registry.store(SUBAGENT).find(entry.name)
    if found is None:
        return page.to_list()
    raw = found.document.get("unreadable")
    base = layout.bearable({} if raw is not None else found.document)
    base["name"] = entry.name
    keeps_prompt = not page.may_read_prompts(request) and bool(base.get("system_prompt"))
    sent = request.POST if request.method == "POST" else None
    form = SubagentForm(
        sent,
        offered=offered(now),
        base=base,
        named=True,
        hides_prompt=keeps_prompt,
        initial={**SubagentForm.initial_of(base), "version": found.version or ""},
    )
    if sent is not None and form.is_valid():
        document, version = form.document(), form.cleaned_data["version"]
        try:
            stored = _stored(
                form,
                lambda: services.replace(
                    SUBAGENT, entry.name, document, expected_version=version, actor=page.actor(request)
                ),
            )
        except StaleVersion:
            stored = None
            form.add_error(None, _("It has been changed since this page was opened. Look at it again before you save."))
        if stored is not None:
            messages.success(request, _("%(name)s was repaired.") % {"name": stored.title})
            return _after(page, request, stored)
    shows_raw = page.may_read_prompts(request)
    return _shown(
        page,
        request,
        now,
        entry,
        form=form,
        raw=_raw_text(found.document, raw) if shows_raw else "",
        is_repair=True,
    )


def _stale(page: CatalogueAdmin, request: HttpRequest, form: SubagentForm, stale: StaleVersion) -> HttpResponse:
    """Refuse the save, say who changed what, keep what was typed, and offer to save on top of it on purpose."""
    now = registry.current(max_age=0)
    entry = now.catalogue.by_key(row_key(Source.MANAGED, stale.name))
    newest = next(iter(services.revisions(SUBAGENT, stale.name)), None)
    author = layout.author_of(newest) if newest else ""
    if entry is None or stale.current is None:
        return gone(page, request, now, stale.name)
    if entry.problems:
        messages.error(request, _("It has been changed since this page was opened, and cannot be read any more."))
        return _after(page, request, entry.definition, stays=True)
    merged = merge(stale, typed=form.document(), stored=SUBAGENT.to_plain(entry.definition))
    again = _form(page, request, now, merged.stored, version=entry.definition.version, shown=merged.document)
    return _shown(
        page,
        request,
        now,
        entry,
        form=again,
        status=409,
        conflict=_conflict(page, request, merged),
        author=author,
        changed_at=newest.created_at if newest else None,
        is_unsaved=True,
    )


def _conflict(page: CatalogueAdmin, request: HttpRequest, merged: Merged) -> list[layout.Change]:
    shows_prompt = page.may_read_prompts(request)
    return [layout.change(difference, shows_prompt=shows_prompt) for difference in merged.differences]


def gone(page: CatalogueAdmin, request: HttpRequest, now: Registry, name: str) -> HttpResponse:
    """Somebody deleted it while it was being edited: what was typed becomes a new one, where the prompt is known."""
    if "system_prompt" not in request.POST or not page.has_add_permission(request):
        messages.error(request, _("It was deleted while you were editing it."))
        return page.to_list()
    typed = request.POST.copy()
    typed["name"], typed["version"] = name, ""
    newest = next(iter(services.revisions(SUBAGENT, name)), None)
    form = SubagentForm(typed, offered=offered(now))
    context = {
        "was_deleted": True,
        "author": layout.author_of(newest) if newest else _("somebody"),
        "is_unsaved": True,
        "status": 409,
    }
    return _adding(page, request, now, form, context)


def _form(
    page: CatalogueAdmin,
    request: HttpRequest,
    now: Registry,
    base: dict[str, object],
    *,
    version: str | None = None,
    shown: dict[str, Any] | None = None,
    data: Any = None,
) -> SubagentForm:
    initial = {**SubagentForm.initial_of(base if shown is None else shown), "version": version or ""}
    hides_prompt = not page.may_read_prompts(request)
    return SubagentForm(data, offered=offered(now), base=base, named=True, hides_prompt=hides_prompt, initial=initial)


def _after(page: CatalogueAdmin, request: HttpRequest, stored: Definition, *, stays: bool = False) -> HttpResponse:
    if stays or "_continue" in request.POST:
        return redirect("admin:subagents_managedsubagent_change", row_key(Source.MANAGED, stored.name))
    return page.to_list()


def _newest_runs(request: HttpRequest, entry: Entry) -> Any:
    if entry.shadowed_by is not None or not request.user.has_perm("runs.view_run"):
        return ()
    return usage.newest_runs(entry.name)


def _raw_text(document: dict[str, object], raw: object) -> str:
    return str(raw) if raw is not None else json.dumps(document, ensure_ascii=False, indent=2, default=str)


def _status(form: SubagentForm | None) -> int:
    return 422 if form is not None and form.errors else 200
