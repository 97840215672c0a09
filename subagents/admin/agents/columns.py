"""The columns of the list of custom agents. Every one of them reads the entry, never the model's own fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from subagents import wording
from subagents.admin.columns import DefinitionColumns, who
from subagents.admin.rows import agent_entry_of
from subagents.adminkit import display
from subagents.definitions import INHERIT
from subagents.scope import ScopeKind

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from subagents.agent_entries import AgentEntry
    from subagents.models import CustomAgent


class AgentColumns(DefinitionColumns):
    """What the list shows of an agent. `data-live` marks what `live.js` keeps current on an open page."""

    @display(description=_("Agent"), ordering="name")
    def agent(self, obj: CustomAgent) -> SafeString:
        return who(agent_entry_of(obj).agent)

    @display(description=_("Model"), ordering="model")
    def model_in_force(self, obj: CustomAgent) -> SafeString:
        entry = agent_entry_of(obj)
        model = gettext("the default model") if entry.agent.model == INHERIT else entry.agent.model
        return format_html('<span data-live="model-{}">{}</span>', entry.key, "–" if entry.problems else model)

    @display(description=_("May call"), ordering="scope")
    def scope(self, obj: CustomAgent) -> SafeString:
        entry = agent_entry_of(obj)
        if entry.problems:
            return format_html("{}", "–")
        words, is_warning = scope_in_words(entry)
        badge = format_html(
            '<span class="sa-badge sa-state-overridden"><span aria-hidden="true">▲</span> {}</span>', words
        )
        shown = badge if is_warning else words
        names = wording.shortlist(entry.resolved) if entry.agent.scope.kind is ScopeKind.ONLY else ""
        return format_html(
            '<span class="sa-used" data-live="scope-{}">{}<span class="sa-sub">{}</span></span>',
            entry.key,
            shown,
            names,
        )


def scope_in_words(entry: AgentEntry) -> tuple[str, bool]:
    """How many subagents the agent may call, and whether that deserves a warning: some are selected, none can run."""
    scope, count = entry.agent.scope, len(entry.resolved)
    if scope.kind is ScopeKind.NONE:
        return gettext("nobody"), False
    if not entry.agent.subagent_enabled:
        return gettext("nobody: delegation is off"), False
    facts = {"count": count, "selected": len(scope.names)}
    if scope.kind is ScopeKind.ALL:
        return gettext("all enabled: %(count)s now") % facts, False
    if not count:
        return gettext("nobody now: 0 of %(selected)s selected") % facts, True
    return gettext("%(count)s of %(selected)s selected") % facts, False
