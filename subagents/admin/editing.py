"""The page of one entry of either kind, and the forms that make, change and repair what is stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.utils.translation import gettext as _

from subagents import registry, services, wording
from subagents.admin import layout, live
from subagents.admin.columns import state_badge
from subagents.admin.history import key_of
from subagents.admin.merging import merge
from subagents.errors import InvalidDefinition, NameTaken, StaleVersion, SubagentsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from subagents.admin.base import DefinitionAdmin
    from subagents.admin.forms import DocumentForm
    from subagents.registry import Registry


def change(page: DefinitionAdmin, request: HttpRequest, now: Registry, entry: Any) -> HttpResponse:
    """Show an entry; with the form where it is stored here and this person may change it."""
    if not page.has_change_permission(request, page.row(entry)):
        return _shown(page, request, now, entry, form=None)
    if entry.problems:
        return _repair(page, request, now, entry)
    base = page.kind.to_plain(entry.item)
    if request.method != "POST":
        form = _form(page, request, now, base, version=entry.item.version)
        return _shown(page, request, now, entry, form=form)
    return _change(page, request, now, entry, _form(page, request, now, base, data=request.POST))


def _change(page: DefinitionAdmin, request: HttpRequest, now: Registry, entry: Any, form: DocumentForm) -> HttpResponse:
    """Save what was sent, if it is whole and nobody else saved in between."""
    if not form.is_valid():
        return _shown(page, request, now, entry, form=form)
    version, changes = form.cleaned_data["version"], form.changes()
    if not changes and version == entry.item.version:
        messages.info(request, _("Nothing was changed."))
        return _after(page, request, entry.item)
    try:
        stored = _stored(
            page,
            form,
            lambda: services.update(
                page.kind, entry.name, changes, expected_version=version, actor=page.actor(request)
            ),
        )
    except StaleVersion as stale:
        return _stale(page, request, form, stale)
    if stored is None:
        return _shown(page, request, now, entry, form=form)
    messages.success(request, _("%(name)s was saved.") % {"name": stored.title})
    return _after(page, request, stored)


def add(page: DefinitionAdmin, request: HttpRequest, now: Registry) -> HttpResponse:
    """Make a definition: from nothing, or as a copy of the entry that the address names with `from`."""
    copied = page.find(now, request.GET.get("from", ""))
    if copied is not None and copied.problems:
        copied = None
    base: dict[str, Any] = dict(services.document_of(copied)) if copied else {}
    # Whoever may not read prompts copies one unseen; a new one they write themselves.
    hides_prompt = copied is not None and not page.may_read_prompts(request)
    sent = request.POST if request.method == "POST" else None
    form = page.make_form(now, base, data=sent, hides_prompt=hides_prompt)
    if sent is not None and form.is_valid():
        stored = _stored(page, form, lambda: services.create(page.kind, form.document(), actor=page.actor(request)))
        if stored is not None:
            messages.success(request, _("%(name)s was made.") % {"name": stored.title})
            return _after(page, request, stored)
    return _adding(page, request, now, form, {"copied": copied, **(page.copy_context(copied) if copied else {})})


def gone(page: DefinitionAdmin, request: HttpRequest, now: Registry, name: str) -> HttpResponse:
    """Somebody deleted it while it was being edited: what was typed becomes a new one, where the prompt is known."""
    if "system_prompt" not in request.POST or not page.has_add_permission(request):
        messages.error(request, _("It was deleted while you were editing it."))
        return page.to_list()
    typed = request.POST.copy()
    typed["name"], typed["version"] = name, ""
    newest = next(iter(services.revisions(page.kind, name)), None)
    context = {
        "was_deleted": True,
        "author": layout.author_of(newest) if newest else _("somebody"),
        "is_unsaved": True,
        "status": 409,
    }
    return _adding(page, request, now, page.make_form(now, {}, data=typed), context)


def _stored(page: DefinitionAdmin, form: DocumentForm, save: Callable[[], Any]) -> Any:
    """Save. What is refused shows on the form, and None comes back; only a stale version is the caller's to answer."""
    try:
        return save()
    except StaleVersion:
        raise
    except NameTaken as taken:
        form.add_error("name", page.refusal(taken))
    except InvalidDefinition as refused:
        form.add_faults(refused)
    except SubagentsError as refused:
        form.add_error(None, page.refusal(refused))
    return None


def _adding(
    page: DefinitionAdmin, request: HttpRequest, now: Registry, form: DocumentForm, more: dict[str, Any]
) -> HttpResponse:
    context = {"is_new": True, **_form_context(page, form, now, None), **more}
    status = context.pop("status", None) or _status(form)
    return page.render(request, "entry.html", context, title=page.texts["add"], status=status)


def _shown(
    page: DefinitionAdmin,
    request: HttpRequest,
    now: Registry,
    entry: Any,
    *,
    form: DocumentForm | None,
    status: int | None = None,
    **more: Any,
) -> HttpResponse:
    may_read_prompt, row = page.may_read_prompts(request), page.row(entry)
    context = {
        "original": row,
        "entry": entry,
        "state_badge": state_badge(entry.state),
        "reason": wording.say(entry.reason) if entry.reason else "",
        "warnings": [wording.say(note) for note in entry.warnings],
        "config_refused": now.config_refused,
        "may_read_prompt": may_read_prompt,
        "prompt": getattr(entry.item, "system_prompt", "") if may_read_prompt and form is None else "",
        "may_delete": page.has_delete_permission(request, row),
        "may_copy": page.has_add_permission(request) and not entry.problems,
        **live.context(now),
        **page.entry_context(request, now, entry, form),
        **(_form_context(page, form, now, entry) if form else {}),
        **more,
    }
    status = status if status is not None else _status(form)
    return page.render(request, "entry.html", context, title=entry.item.title, status=status)


def _form_context(page: DefinitionAdmin, form: DocumentForm, now: Registry, entry: Any) -> dict[str, Any]:
    hides_prompt = "system_prompt" not in form.fields
    return {"form": form, "hides_prompt": hides_prompt, **page.form_context(form, now, entry)}


def _repair(page: DefinitionAdmin, request: HttpRequest, now: Registry, entry: Any) -> HttpResponse:
    """Show what a broken row holds and what is wrong with it; a saved form replaces the whole of it."""
    found = registry.store(page.kind).find(entry.name)
    if found is None:
        return page.to_list()
    raw = found.document.get("unreadable")
    base = {**page.bearable({} if raw is not None else found.document), "name": entry.name}
    keeps_prompt = not page.may_read_prompts(request) and bool(base.get("system_prompt"))
    sent = request.POST if request.method == "POST" else None
    form = page.make_form(
        now, base, data=sent, named=True, hides_prompt=keeps_prompt, shown=base, version=found.version or ""
    )
    if sent is not None and form.is_valid():
        try:
            stored = _stored(page, form, lambda: _replaced(page, request, entry, form))
        except StaleVersion:
            stored = None
            form.add_error(None, _("It has been changed since this page was opened. Look at it again before you save."))
        if stored is not None:
            messages.success(request, _("%(name)s was repaired.") % {"name": stored.title})
            return _after(page, request, stored)
    text = ""
    if page.may_read_prompts(request):
        text = (
            str(raw)
            if raw is not None
            else json.dumps(page.kind.shown(found.document), ensure_ascii=False, indent=2, default=str)
        )
    return _shown(page, request, now, entry, form=form, raw=text, is_repair=True)


def _replaced(page: DefinitionAdmin, request: HttpRequest, entry: Any, form: DocumentForm) -> Any:
    version = form.cleaned_data["version"]
    return services.replace(page.kind, entry.name, form.document(), expected_version=version, actor=page.actor(request))


def _stale(page: DefinitionAdmin, request: HttpRequest, form: DocumentForm, stale: StaleVersion) -> HttpResponse:
    """Refuse the save, say who changed what, keep what was typed, and offer to save on top of it on purpose."""
    now = registry.current(max_age=0)
    entry = page.find(now, key_of(stale.name))
    if entry is None or stale.current is None:
        return gone(page, request, now, stale.name)
    if entry.problems:
        messages.error(request, _("It has been changed since this page was opened, and cannot be read any more."))
        return page.to_entry(entry.name)
    newest = next(iter(services.revisions(page.kind, stale.name)), None)
    merged = merge(stale, typed=form.document(), stored=page.kind.to_plain(entry.item))
    again = _form(page, request, now, merged.stored, version=entry.item.version, shown=merged.document)
    shows_prompt = page.may_read_prompts(request)
    return _shown(
        page,
        request,
        now,
        entry,
        form=again,
        status=409,
        conflict=[
            layout.change(one, shows_prompt=shows_prompt, labels=page.labels, say=page.in_words)
            for one in merged.differences
        ],
        author=layout.author_of(newest) if newest else "",
        changed_at=newest.created_at if newest else None,
        is_unsaved=True,
    )


def _form(
    page: DefinitionAdmin,
    request: HttpRequest,
    now: Registry,
    base: dict[str, Any],
    *,
    version: str | None = None,
    shown: dict[str, Any] | None = None,
    data: Any = None,
) -> DocumentForm:
    hides_prompt = not page.may_read_prompts(request)
    how = {"shown": base if shown is None else shown, "version": version or ""}
    return page.make_form(now, base, data=data, named=True, hides_prompt=hides_prompt, **how)


def _after(page: DefinitionAdmin, request: HttpRequest, stored: Any) -> HttpResponse:
    return page.to_entry(stored.name) if "_continue" in request.POST else page.to_list()


def _status(form: DocumentForm | None) -> int:
    return 422 if form is not None and form.errors else 200
