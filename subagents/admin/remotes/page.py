"""The Remote agents page of the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from subagents import registry, remote_contacts, services, wording
from subagents.admin.base import DefinitionAdmin
from subagents.admin.columns import checkbox, lock, source_badge
from subagents.admin.filters import SourceFilter, StateFilter
from subagents.admin.offered import offered
from subagents.admin.remotes import words
from subagents.admin.remotes.columns import RemoteColumns, contact_in_words
from subagents.admin.remotes.form import RemoteForm
from subagents.adminkit import ModelAdmin
from subagents.definitions import PRECEDENCE, Source
from subagents.errors import ConfigRefused
from subagents.finding import COMMON_ORDERS
from subagents.kinds import REMOTE
from subagents.models import RemoteAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from subagents.registry import Registry
    from subagents.remote_entries import RemoteEntry

_KEPT_WHEN_BROKEN = {
    **dict.fromkeys(("display_name", "description", "graph_id", "url", "webhook", "update_strategy", "mode"), str),
    "use_env_key": bool | str,
    "notify_parent": bool,
    "enabled": bool,
    "headers": dict,
}


@admin.register(RemoteAgent)
class RemoteAdmin(RemoteColumns, DefinitionAdmin):
    """Those of config.yaml are listed and opened too, and never changed."""

    list_display = ["agent", "source", "state", "where", "contact", "updated"]
    list_display_links = ["agent"]
    list_filter = [SourceFilter, StateFilter]
    search_help_text = _("Search by name or by when to use it")

    kind = REMOTE
    list_title = _("Remote agents")
    texts = {
        "add": _("Add remote agent"),
        "new": _("New remote agent"),
        "back": _("Back to the agent"),
        "none_such": _("There is no such remote agent, or no longer."),
        "choose": _("Choose what shall be done with the selected agents."),
        "enable": _("Enable selected agents"),
        "disable": _("Disable selected agents"),
        "rows": _("Remote agents were added or removed since this page was opened."),
        "version": _(
            "Somebody else has saved this agent since you opened it. You can go on: before anything is replaced,"
            " you will see what they changed."
        ),
        "refused": _("No good configuration is known yet, so no agent can run."),
    }
    labels = words.FIELDS
    orders = {
        **COMMON_ORDERS,
        "source": lambda entry: PRECEDENCE[entry.source],
        "where": lambda entry: (entry.agent.host, entry.agent.graph_id),
    }

    class Media:
        css = {"all": ["subagents/catalogue.css", "subagents/forms.css", "subagents/remotes.css"]}

    def entries(self, now: Registry) -> Sequence[RemoteEntry]:
        return now.remotes

    def in_words(self, field: str, value: object, *, shows_prompt: bool = True) -> str:
        return words.value_in_words(field, value)

    def refusal(self, refused: Exception) -> str:
        return wording.refusal(refused)

    def uses(self, names: Collection[str]) -> Mapping[str, Any]:
        return remote_contacts.contacts(names)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request) and _is_managed(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request) and _is_managed(obj)

    def may_read_prompts(self, request: HttpRequest) -> bool:
        return True  # there are none

    def action_checkbox(self, obj: Any) -> Any:
        title = obj.entry.agent.title
        return checkbox(obj.entry.key, title) if obj.entry.source is Source.MANAGED else lock(title)

    action_checkbox.__dict__.update(ModelAdmin.action_checkbox.__dict__)

    def own_urls(self) -> list[tuple[str, Callable[..., Any], str]]:
        return [*super().own_urls(), ("<path:object_id>/try/", self.try_view, "try")]

    def try_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask the agent's server now whether tasks could be started there, and say what came of it."""
        self.permit(request, "change")
        try:
            now = registry.current(max_age=0)
        except ConfigRefused as refused:
            return self.refused_page(request, refused)
        entry = self.find(now, unquote(object_id))
        if request.method != "POST" or entry is None or entry.problems:
            return self.none_such(request)
        fault = remote_contacts.try_out(entry.agent, now.config)
        if fault is None:
            messages.success(request, gettext("%(name)s answers and knows its graph.") % {"name": entry.agent.title})
        else:
            messages.error(request, wording.say(fault.sentence))
        return self.to_key(entry.key)

    def make_form(self, now: Registry, base: Mapping[str, Any], *, data: Any = None, **how: Any) -> RemoteForm:
        return RemoteForm(data, offered=offered(now), base=base, **{**how, "hides_prompt": False})

    def bearable(self, document: Mapping[str, object]) -> dict[str, Any]:
        """Keep of a broken document what the form can show. Headers that cannot be opened are entered again."""
        kinds: Mapping[str, Any] = _KEPT_WHEN_BROKEN
        kept = {field: document[field] for field, kind in kinds.items() if isinstance(document.get(field), kind)}
        return {**kept, "headers": {}}

    def form_context(self, form: Any, now: Registry, entry: RemoteEntry | None) -> dict[str, Any]:
        return {"groups": form.groups(), "hides_prompt": False}

    def entry_context(self, request: HttpRequest, now: Registry, entry: RemoteEntry, form: Any) -> dict[str, Any]:
        shown = REMOTE.shown(REMOTE.to_plain(entry.agent)) if form is None and not entry.problems else {}
        return {
            "source_badge": source_badge(entry.source),
            "lines": [(words.FIELDS[field], field, self.in_words(field, value)) for field, value in shown.items()],
            "contact": contact_in_words(self.uses([entry.name]).get(entry.name)),
            "may_try": entry.agent.url is not None and not entry.problems and super().has_change_permission(request),
            "named_by": services.named_by(entry.name) if entry.shadowed_by is None else (),
        }

    def copy_context(self, copied: RemoteEntry) -> dict[str, Any]:
        return {"copied_source": source_badge(copied.source)}

    def deletion_context(self, now: Registry, entry: RemoteEntry) -> dict[str, Any]:
        return {"source_badge": source_badge(entry.source), "named_by": services.named_by(entry.name), "use": None}

    def list_context(self, now: Registry) -> dict[str, Any]:
        return {
            "is_empty": not now.remotes,
            "conflicts": [
                (entry, wording.SOURCES[entry.shadowed_by]) for entry in now.remotes if entry.shadowed_by is not None
            ],
        }


def _is_managed(obj: Any) -> bool:
    return obj is None or obj.entry.source is Source.MANAGED
