"""The columns of the list of custom agents. Every one of them reads the entry, never the model's own fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from subagents import wording
from subagents.admin.agents.rows import entry_of
from subagents.admin.columns import moment, state_badge, switch_button
from subagents.adminkit import display
from subagents.definitions import INHERIT
from subagents.scope import ScopeKind

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from subagents.agent_entries import AgentEntry
    from subagents.models import CustomAgent


class AgentColumns:
    """What the list shows of an agent. `data-live` marks what `live.js` keeps current on an open page."""

    @display(description=_("Agent"), ordering="name")
    def agent(self, obj: CustomAgent) -> SafeString:
        agent = entry_of(obj).agent
        name = format_html(" <code>{}</code>", agent.name) if agent.display_name else ""
        first_line = agent.description.strip().split("\n", 1)[0]
        return format_html(
            '<span class="sa-who"><strong>{}</strong>{}<span class="sa-sub">{}</span></span>',
            agent.title,
            name,
            first_line,
        )

    @display(description=_("State"), ordering="state")
    def state(self, obj: CustomAgent) -> SafeString:
        entry = entry_of(obj)
        switch: SafeString | str = ""
        if getattr(obj, "may_switch", False):
            switch = switch_button(entry.key, entry.agent.title, is_on=entry.agent.enabled)
        return format_html(
            '<span class="sa-state" data-live="state-{}">{} {}</span>', entry.key, state_badge(entry.state), switch
        )

    @display(description=_("Model"), ordering="model")
    def model_in_force(self, obj: CustomAgent) -> SafeString:
        entry = entry_of(obj)
        model = gettext("the default model") if entry.agent.model == INHERIT else entry.agent.model
        return format_html('<span data-live="model-{}">{}</span>', entry.key, "–" if entry.problems else model)

    @display(description=_("May call"), ordering="scope")
    def scope(self, obj: CustomAgent) -> SafeString:
        entry = entry_of(obj)
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

    @display(description=_("Last use"), empty_value="–")
    def last_use(self, obj: CustomAgent) -> SafeString | None:
        use: Any = getattr(obj, "use", None)
        if use is None:
            return None
        recent = ngettext("%(count)s run in 7 days", "%(count)s runs in 7 days", use.recent_runs)
        return format_html(
            '<span class="sa-used">{}<span class="sa-sub">{}</span></span>',
            moment(use.at),
            recent % {"count": wording.number(use.recent_runs)},
        )

    @display(description=_("Updated"), ordering="updated", empty_value="–")
    def updated(self, obj: CustomAgent) -> SafeString | None:
        at = entry_of(obj).agent.updated_at
        return moment(at) if at is not None else None


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
