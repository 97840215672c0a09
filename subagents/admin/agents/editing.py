"""The page of one custom agent, and the forms that make, change and repair it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from engine.tools.names import DELEGATION_TOOLS
from subagents import registry, services, wording
from subagents.admin import layout, live
from subagents.admin.agents import words
from subagents.admin.agents.form import AgentForm
from subagents.admin.agents.reach import reach_of
from subagents.admin.agents.rows import row
from subagents.admin.columns import state_badge
from subagents.admin.merging import Merged, merge
from subagents.admin.offered import offered
from subagents.admin.widgets import UNDECIDED
from subagents.errors import InvalidDefinition, NameTaken, StaleVersion, SubagentsError
from subagents.kinds import AGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    from subagents.admin.agents.page import AgentAdmin
    from subagents.agent_entries import AgentEntry
    from subagents.custom_agents import CustomAgent
    from subagents.registry import Registry

# Whom a lead may call is said by its scope, not by its list of tools. The other two are denied to subagents only.
_NEVER_PICKED: Final = tuple(name for name in DELEGATION_TOOLS if name not in {"ask_clarification", "present_files"})


def change(page: AgentAdmin, request: HttpRequest, now: Registry, entry: AgentEntry) -> HttpResponse:
    """Show an agent; with the form where this person may change it."""
    if not page.has_change_permission(request):
        return _shown(page, request, now, entry, form=None)
    if entry.problems:
        return _repair(page, request, now, entry)
    base = AGENT.to_plain(entry.agent)
    if request.method != "POST":
        return _shown(page, request, now, entry, form=_form(page, request, now, base, version=entry.agent.version))
    form = _form(page, request, now, base, data=request.POST)
    if not form.is_valid():
        return _shown(page, request, now, entry, form=form)
    version = form.cleaned_data["version"]
    changes = form.changes()
    if not changes and version == entry.agent.version:
        messages.info(request, _("Nothing was changed."))
        return _after(page, request, entry.agent)
    try:
        stored = _stored(
            form,
            lambda: services.update(AGENT, entry.name, changes, expected_version=version, actor=page.actor(request)),
        )
    except StaleVersion as stale:
        return _stale(page, request, form, stale)
    if stored is None:
        return _shown(page, request, now, entry, form=form)
    messages.success(request, _("%(name)s was saved.") % {"name": stored.title})
    return _after(page, request, stored)


def add(page: AgentAdmin, request: HttpRequest, now: Registry) -> HttpResponse:
    """Make an agent: from nothing, or as a copy of the one that the address names with `from`."""
    copied = by_key(now, request.GET.get("from", ""))
    if copied is not None and copied.problems:
        copied = None
    base: dict[str, Any] = dict(services.document_of(copied)) if copied else {}
    # Whoever may not read prompts copies one unseen; a new one they write themselves.
    hides_prompt = copied is not None and not page.may_read_prompts(request)
    sent = request.POST if request.method == "POST" else None
    form = _new_form(now, base, data=sent, hides_prompt=hides_prompt)
    if sent is not None and form.is_valid():
        stored = _stored(form, lambda: services.create(AGENT, form.document(), actor=page.actor(request)))
        if stored is not None:
            messages.success(request, _("%(name)s was made.") % {"name": stored.title})
            return _after(page, request, stored)
    return _adding(page, request, now, form, {"copy_of": copied})


def _stored(form: AgentForm, save: Callable[[], CustomAgent]) -> CustomAgent | None:
    """Save. What is refused shows on the form; only a stale version is the caller's to answer."""
    try:
        return save()
    except StaleVersion:
        raise
    except NameTaken as taken:
        form.add_error("name", words.refusal(taken))
    except InvalidDefinition as refused:
        form.add_faults(refused)
    except SubagentsError as refused:
        form.add_error(None, words.refusal(refused))
    return None


def _replaced(page: AgentAdmin, request: HttpRequest, entry: AgentEntry, form: AgentForm) -> CustomAgent:
    version = form.cleaned_data["version"]
    return services.replace(AGENT, entry.name, form.document(), expected_version=version, actor=page.actor(request))


def by_key(now: Registry, key: str) -> AgentEntry | None:
    return next((entry for entry in now.agents if entry.key == key), None)


def _adding(
    page: AgentAdmin, request: HttpRequest, now: Registry, form: AgentForm, more: dict[str, Any]
) -> HttpResponse:
    context = {"is_new": True, **_form_context(form, now), **more}
    return page.render(request, "entry.html", context, title=_("Add custom agent"), status=_status(form))


def _shown(
    page: AgentAdmin,
    request: HttpRequest,
    now: Registry,
    entry: AgentEntry,
    *,
    form: AgentForm | None,
    status: int | None = None,
    **more: Any,
) -> HttpResponse:
    may_read_prompt = page.may_read_prompts(request)
    agent = entry.agent
    context = {
        "original": row(entry),
        "entry": entry,
        "state_badge": state_badge(entry.state),
        "reason": wording.say(entry.reason) if entry.reason else "",
        "warnings": [wording.say(note) for note in entry.warnings],
        "config_refused": now.config_refused,
        "lines": _lines(agent) if form is None and not entry.problems else (),
        "may_read_prompt": may_read_prompt,
        "prompt": agent.system_prompt if may_read_prompt and form is None else "",
        "reach": reach_of(agent.scope, now.catalogue, delegates=agent.subagent_enabled),
        "may_delete": page.has_delete_permission(request),
        "may_copy": page.has_add_permission(request) and not entry.problems,
        **live.context(now),
        **(_form_context(form, now) if form else {}),
        **more,
    }
    status = status if status is not None else _status(form)
    return page.render(request, "entry.html", context, title=agent.title, status=status)


def _form_context(form: AgentForm, now: Registry) -> dict[str, Any]:
    scope, delegates = form.chosen_scope()
    return {
        "form": form,
        "groups": form.groups(),
        "scope_rows": form.scope_rows(),
        "hides_prompt": "system_prompt" not in form.fields,
        "reach": reach_of(scope, now.catalogue, delegates=delegates),
    }


def _lines(agent: CustomAgent) -> list[tuple[object, str, str]]:
    """Label, field and value of what an agent says, for those who may not change it."""
    document = AGENT.to_plain(agent)
    fields = [field for field in document if field not in {"system_prompt", "allowed_subagents"}]
    return [(words.FIELDS.get(field, field), field, words.value_in_words(field, document[field])) for field in fields]


def _repair(page: AgentAdmin, request: HttpRequest, now: Registry, entry: AgentEntry) -> HttpResponse:
    """Show what a broken one holds and what is wrong with it; a saved form replaces the whole of it."""
    found = registry.store(AGENT).find(entry.name)
    if found is None:
        return page.to_list()
    raw = found.document.get("unreadable")
    base = _bearable({} if raw is not None else found.document) | {"name": entry.name}
    keeps_prompt = not page.may_read_prompts(request) and bool(base.get("system_prompt"))
    sent = request.POST if request.method == "POST" else None
    initial = {**AgentForm.initial_of(base), "version": found.version or ""}
    form = _new_form(now, base, data=sent, hides_prompt=keeps_prompt, named=True, initial=initial)
    if sent is not None and form.is_valid():
        try:
            stored = _stored(form, lambda: _replaced(page, request, entry, form))
        except StaleVersion:
            stored = None
            form.add_error(None, _("It has been changed since this page was opened. Look at it again before you save."))
        if stored is not None:
            messages.success(request, _("%(name)s was repaired.") % {"name": stored.title})
            return _after(page, request, stored)
    text = ""
    if page.may_read_prompts(request):
        text = str(raw) if raw is not None else json.dumps(found.document, ensure_ascii=False, indent=2, default=str)
    return _shown(page, request, now, entry, form=form, raw=text, is_repair=True)


def _bearable(document: Mapping[str, object]) -> dict[str, Any]:
    """Keep of a broken document what the form can show. Of a scope that cannot be read nothing is chosen."""
    kept = {field: value for field, value in layout.bearable(document).items() if field in AGENT.fields}
    delegates = document.get("subagent_enabled", True)
    allowed = document.get("allowed_subagents", UNDECIDED)
    return {
        **kept,
        "subagent_enabled": delegates is True,
        "allowed_subagents": allowed if isinstance(allowed, list | None) else UNDECIDED,
    }


def _stale(page: AgentAdmin, request: HttpRequest, form: AgentForm, stale: StaleVersion) -> HttpResponse:
    """Refuse the save, say who changed what, keep what was typed, and offer to save on top of it on purpose."""
    now = registry.current(fresh=True)
    entry = next((one for one in now.agents if one.name == stale.name), None)
    newest = next(iter(services.revisions(AGENT, stale.name)), None)
    author = layout.author_of(newest) if newest else ""
    if entry is None or stale.current is None:
        return _deleted(page, request, now, form, author)
    if entry.problems:
        messages.error(request, _("It has been changed since this page was opened, and cannot be read any more."))
        return redirect("admin:subagents_customagent_change", entry.key)
    merged = merge(stale, typed=form.document(), stored=AGENT.to_plain(entry.agent))
    again = _form(page, request, now, merged.stored, version=entry.agent.version, shown=merged.document)
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


def _conflict(page: AgentAdmin, request: HttpRequest, merged: Merged) -> list[layout.Change]:
    shows_prompt = page.may_read_prompts(request)
    return [
        layout.change(one, shows_prompt=shows_prompt, labels=words.FIELDS, say=words.value_in_words)
        for one in merged.differences
    ]


def _deleted(page: AgentAdmin, request: HttpRequest, now: Registry, form: AgentForm, author: str) -> HttpResponse:
    """It was deleted while it was being edited: what was typed is kept as a new one, unless the prompt is hidden."""
    if "system_prompt" not in form.fields or not page.has_add_permission(request):
        messages.error(request, _("It was deleted while you were editing it."))
        return page.to_list()
    again = _new_form(now, form.document())
    return _adding(page, request, now, again, {"was_deleted": True, "author": author, "is_unsaved": True})


def _form(
    page: AgentAdmin,
    request: HttpRequest,
    now: Registry,
    base: dict[str, Any],
    *,
    version: str | None = None,
    shown: dict[str, Any] | None = None,
    data: Any = None,
) -> AgentForm:
    initial = {**AgentForm.initial_of(base if shown is None else shown), "version": version or ""}
    hides_prompt = not page.may_read_prompts(request)
    return _new_form(now, base, data=data, hides_prompt=hides_prompt, named=True, initial=initial)


def _new_form(now: Registry, base: dict[str, Any], *, data: Any = None, **more: Any) -> AgentForm:
    return AgentForm(data, offered=offered(now, never=_NEVER_PICKED), catalogue=now.catalogue, base=base, **more)


def _after(page: AgentAdmin, request: HttpRequest, stored: CustomAgent) -> HttpResponse:
    if "_continue" in request.POST:
        return redirect("admin:subagents_customagent_change", stored.key)
    return page.to_list()


def _status(form: AgentForm | None) -> int:
    return 422 if form is not None and form.errors else 200
