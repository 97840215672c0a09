"""The Subagents page of the admin: the whole catalogue; managed entries can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from engine.config.errors import Severity
from subagents import services, usage, wording
from subagents.admin import details, layout
from subagents.admin.base import DefinitionAdmin
from subagents.admin.columns import Columns, checkbox, lock, source_badge
from subagents.admin.filters import ModelFilter, SourceFilter, StateFilter
from subagents.admin.forms import SubagentForm
from subagents.admin.offered import offered
from subagents.admin.rows import entry_of
from subagents.adminkit import ModelAdmin
from subagents.catalogue import State
from subagents.definitions import Source
from subagents.finding import ORDERS
from subagents.kinds import SUBAGENT
from subagents.models import ManagedSubagent

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.http import HttpRequest

    from subagents.catalogue import Entry
    from subagents.registry import Registry
    from subagents.usage import Use


@admin.register(ManagedSubagent)
class CatalogueAdmin(Columns, DefinitionAdmin):
    """Built-in and config.yaml entries are listed and opened too, and never changed."""

    list_display = ["subagent", "source", "state", "limits", "model_in_force", "last_use", "updated"]
    list_display_links = ["subagent"]
    list_filter = [SourceFilter, StateFilter, ModelFilter]
    search_help_text = _("Search by name or by when to use it")

    kind = SUBAGENT
    list_title = _("Subagents")
    texts = {
        "add": _("Add subagent"),
        "new": _("New subagent"),
        "back": _("Back to the subagent"),
        "none_such": _("There is no such subagent, or no longer."),
        "choose": _("Choose what shall be done with the selected subagents."),
        "enable": _("Enable selected subagents"),
        "disable": _("Disable selected subagents"),
        "rows": _("Subagents were added or removed since this page was opened."),
        "version": _(
            "Somebody else has saved this subagent since you opened it. You can go on: before anything is replaced,"
            " you will see what they changed."
        ),
        "refused": _("No good configuration is known yet, so no subagent can run."),
    }
    labels = wording.DOCUMENT_FIELDS
    orders = ORDERS

    class Media:
        css = {"all": ["subagents/catalogue.css", "subagents/forms.css"]}

    def entries(self, now: Registry) -> Sequence[Entry]:
        return now.catalogue.entries

    def in_words(self, field: str, value: object, *, shows_prompt: bool = True) -> str:
        return layout.value_in_words(field, value, shows_prompt=shows_prompt)

    def refusal(self, refused: Exception) -> str:
        return wording.refusal(refused)

    def uses(self, names: Collection[str]) -> Mapping[str, Use]:
        return usage.last_used(names)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request) and _is_managed(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request) and _is_managed(obj)

    def action_checkbox(self, obj: ManagedSubagent) -> Any:
        entry = entry_of(obj)
        title = entry.definition.title
        return checkbox(entry.key, title) if entry.source is Source.MANAGED else lock(title)

    action_checkbox.__dict__.update(ModelAdmin.action_checkbox.__dict__)  # the skin's own heading of the column

    def make_form(self, now: Registry, base: Mapping[str, Any], *, data: Any = None, **how: Any) -> SubagentForm:
        return SubagentForm(data, offered=offered(now), base=base, **how)

    def bearable(self, document: Mapping[str, object]) -> dict[str, Any]:
        return layout.bearable(document)

    def form_context(self, form: Any, now: Registry, entry: Entry | None) -> dict[str, Any]:
        return {"groups": layout.groups(form, entry, now.config)}

    def entry_context(self, request: HttpRequest, now: Registry, entry: Entry, form: Any) -> dict[str, Any]:
        may_see_runs = entry.shadowed_by is None and request.user.has_perm("runs.view_run")
        return {
            "source_badge": source_badge(entry.source),
            "layer_groups": details.groups(entry),
            "digest": details.digest(entry),
            "named_by": services.named_by(entry.name) if entry.shadowed_by is None else (),
            "newest_runs": usage.newest_runs(entry.name) if may_see_runs else (),
        }

    def copy_context(self, copied: Entry) -> dict[str, Any]:
        return {"copied_source": source_badge(copied.source)}

    def deletion_context(self, now: Registry, entry: Entry) -> dict[str, Any]:
        namesakes = [other for other in now.catalogue.entries if other.name == entry.name and other is not entry]
        return {
            "source_badge": source_badge(entry.source),
            "named_by": services.named_by(entry.name),
            "is_held_by_another": bool(namesakes),
        }

    def list_context(self, now: Registry) -> dict[str, Any]:
        """What stands above the list because it concerns more than one entry."""
        entries = now.catalogue.entries
        return {
            "problems": now.problems,
            "entry_problem_count": sum(problem.severity is Severity.ENTRY for problem in now.problems),
            "conflicts": [
                (entry, wording.SOURCES[entry.shadowed_by]) for entry in entries if entry.shadowed_by is not None
            ],
            "unavailable": [
                (entry, wording.say(entry.reason))
                for entry in entries
                if entry.state is State.UNAVAILABLE and entry.reason
            ],
        }


def _is_managed(obj: Any) -> bool:
    return obj is None or entry_of(obj).source is Source.MANAGED
