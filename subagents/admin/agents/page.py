"""The Custom agents page of the admin: leads that administrators make, and whom each may call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from engine.tools.names import DELEGATION_TOOLS
from subagents import usage
from subagents.admin import layout
from subagents.admin.agents import preview, words
from subagents.admin.agents.columns import AgentColumns
from subagents.admin.agents.form import AgentForm
from subagents.admin.agents.reach import reach_of
from subagents.admin.base import DefinitionAdmin
from subagents.admin.filters import StateFilter
from subagents.admin.offered import offered
from subagents.admin.widgets import UNDECIDED
from subagents.finding import AGENT_ORDERS
from subagents.kinds import AGENT
from subagents.models import CustomAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from subagents.agent_entries import AgentEntry
    from subagents.registry import Registry
    from subagents.usage import Use

# Whom a lead may call is said by its scope, not by its list of tools. The other two are denied to subagents only.
_NEVER_PICKED: Final = tuple(name for name in DELEGATION_TOOLS if name not in {"ask_clarification", "present_files"})


@admin.register(CustomAgent)
class AgentAdmin(AgentColumns, DefinitionAdmin):
    """Every custom agent is stored here, so each one can be changed."""

    list_display = ["agent", "state", "model_in_force", "scope", "last_use", "updated"]
    list_display_links = ["agent"]
    list_filter = [StateFilter]
    search_help_text = _("Search by name or by description")

    kind = AGENT
    list_title = _("Custom agents")
    texts = {
        "add": _("Add custom agent"),
        "new": _("New custom agent"),
        "back": _("Back to the agent"),
        "none_such": _("There is no such custom agent, or no longer."),
        "choose": _("Choose what shall be done with the selected agents."),
        "enable": _("Enable selected agents"),
        "disable": _("Disable selected agents"),
        "rows": _("Custom agents were added or removed since this page was opened."),
        "version": _(
            "Somebody else has saved this agent since you opened it. You can go on: before anything is replaced,"
            " you will see what they changed."
        ),
        "refused": _("No good configuration is known yet, so no agent can run."),
    }
    labels = words.FIELDS
    orders = AGENT_ORDERS

    class Media:
        css = {"all": ["subagents/catalogue.css", "subagents/forms.css", "subagents/agents.css"]}

    def entries(self, now: Registry) -> Sequence[AgentEntry]:
        return now.agents

    def in_words(self, field: str, value: object, *, shows_prompt: bool = True) -> str:
        return words.value_in_words(field, value, shows_prompt=shows_prompt)

    def refusal(self, refused: Exception) -> str:
        return words.refusal(refused)

    def uses(self, names: Collection[str]) -> Mapping[str, Use]:
        return usage.agents_last_used(names)

    def own_urls(self) -> list[tuple[str, Callable[..., Any], str]]:
        return [("reach/", self.reach_view, "reach"), *super().own_urls()]

    def reach_view(self, request: HttpRequest) -> HttpResponse:
        self.permit(request, "view")
        return preview.answer(request)

    def make_form(self, now: Registry, base: Mapping[str, Any], *, data: Any = None, **how: Any) -> AgentForm:
        pickable = offered(now, never=_NEVER_PICKED)
        return AgentForm(data, offered=pickable, catalogue=now.catalogue, base=base, **how)

    def bearable(self, document: Mapping[str, object]) -> dict[str, Any]:
        """Keep of a broken document what the form can show. Of a scope that cannot be read nothing is chosen."""
        kept = {field: value for field, value in layout.bearable(document).items() if field in AGENT.fields}
        allowed = document.get("allowed_subagents", UNDECIDED)
        return {
            **kept,
            "subagent_enabled": document.get("subagent_enabled", True) is True,
            "allowed_subagents": allowed if isinstance(allowed, list | None) else UNDECIDED,
        }

    def form_context(self, form: Any, now: Registry, entry: AgentEntry | None) -> dict[str, Any]:
        scope, delegates = form.chosen_scope()
        return {
            "groups": form.groups(),
            "scope_rows": form.scope_rows(),
            "reach": reach_of(scope, now.catalogue, delegates=delegates),
        }

    def entry_context(self, request: HttpRequest, now: Registry, entry: AgentEntry, form: Any) -> dict[str, Any]:
        agent = entry.agent
        shown = AGENT.to_plain(agent) if form is None and not entry.problems else {}
        return {
            "lines": [
                (words.FIELDS.get(field, field), field, words.value_in_words(field, value))
                for field, value in shown.items()
                if field not in {"system_prompt", "allowed_subagents"}
            ],
            "reach": reach_of(agent.scope, now.catalogue, delegates=agent.subagent_enabled),
        }

    def list_context(self, now: Registry) -> dict[str, Any]:
        return {"is_empty": not now.agents}
