"""The columns of the list. Every one of them reads the entry, never the model's own fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from subagents import wording
from subagents.admin import details
from subagents.admin.rows import any_entry_of, entry_of
from subagents.adminkit import CHECKBOX_CLASS, display
from subagents.catalogue import State

if TYPE_CHECKING:
    from datetime import datetime

    from django.utils.safestring import SafeString

    from subagents.custom_agents import CustomAgent
    from subagents.definitions import Definition
    from subagents.models import ManagedSubagent
    from subagents.usage import Use


class DefinitionColumns:
    """The columns that both lists have."""

    @display(description=_("State"), ordering="state")
    def state(self, obj: Any) -> SafeString:
        entry = any_entry_of(obj)
        switch: SafeString | str = ""
        if getattr(obj, "may_switch", False):
            switch = switch_button(entry.key, entry.item.title, is_on=entry.item.enabled)
        return format_html(
            '<span class="sa-state" data-live="state-{}">{} {}</span>', entry.key, state_badge(entry.state), switch
        )

    @display(description=_("Last use"), ordering="used", empty_value="–")
    def last_use(self, obj: Any) -> SafeString | None:
        use: Use | None = getattr(obj, "use", None)
        if use is None:
            return None
        recent = ngettext("%(count)s run in 7 days", "%(count)s runs in 7 days", use.recent_runs)
        return format_html(
            '<span class="sa-used">{}<span class="sa-sub">{}</span></span>',
            moment(use.at),
            recent % {"count": wording.number(use.recent_runs)},
        )

    @display(description=_("Updated"), ordering="updated", empty_value="–")
    def updated(self, obj: Any) -> SafeString | None:
        at = any_entry_of(obj).item.updated_at
        if at is None:
            return None
        author = getattr(obj, "author", "")
        return format_html('<span class="sa-used">{}<span class="sa-sub">{}</span></span>', moment(at), author)


class Columns(DefinitionColumns):
    """What the list shows of an entry. `data-live` marks what `live.js` keeps current on an open page."""

    @display(description=_("Subagent"), ordering="name")
    def subagent(self, obj: ManagedSubagent) -> SafeString:
        return who(entry_of(obj).definition)

    @display(description=_("Source"), ordering="source")
    def source(self, obj: ManagedSubagent) -> SafeString:
        return source_badge(entry_of(obj).source)

    @display(description=_("Limits"), ordering="limits")
    def limits(self, obj: ManagedSubagent) -> SafeString:
        entry = entry_of(obj)
        if entry.state is State.INVALID:
            return format_html("{}", "–")
        parts = [
            details.with_overridden(entry, "max_turns", wording.turns_in_words),
            details.with_overridden(entry, "timeout_seconds", wording.seconds_in_words),
        ]
        return format_html('<span class="sa-limits" data-live="limits-{}">{} · {}</span>', entry.key, *parts)

    @display(description=_("Model"), ordering="model")
    def model_in_force(self, obj: ManagedSubagent) -> SafeString:
        entry = entry_of(obj)
        if entry.state is State.INVALID:
            return format_html("{}", "–")
        shown = details.with_overridden(entry, "model", str)
        return format_html('<span data-live="model-{}">{}</span>', entry.key, shown)


def who(item: Definition | CustomAgent) -> SafeString:
    """Whom a row is about: the title, the name where it is another one, the first line of the description."""
    name = format_html(" <code>{}</code>", item.name) if item.display_name else ""
    first_line = item.description.strip().split("\n", 1)[0]
    return format_html(
        '<span class="sa-who"><strong>{}</strong>{}<span class="sa-sub">{}</span></span>', item.title, name, first_line
    )


def source_badge(source: Any) -> SafeString:
    return format_html('<span class="sa-badge sa-source-{}">{}</span>', source.value, wording.SOURCES[source])


def state_badge(state: State) -> SafeString:
    return format_html(
        '<span class="sa-badge sa-state-{}"><span aria-hidden="true">{}</span> {}</span>',
        state.value,
        wording.SHAPES[state],
        wording.STATES[state],
    )


def moment(at: datetime) -> SafeString:
    """A moment short enough for a column, with the whole of it as its title."""
    local = timezone.localtime(at)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.isoformat(),
        formats.date_format(local, "DATETIME_FORMAT"),
        formats.date_format(local, "SHORT_DATETIME_FORMAT"),
    )


def checkbox(key: str, title: str) -> SafeString:
    """The checkbox of a row that actions can be done to, named after what it chooses."""
    return format_html(
        '<input type="checkbox" name="{}" value="{}" class="{}" aria-label="{}">',
        ACTION_CHECKBOX_NAME,
        key,
        CHECKBOX_CLASS,
        _("Select %(name)s") % {"name": title},
    )


def lock(title: str) -> SafeString:
    """What stands in place of the checkbox of a read-only row."""
    label = _("%(name)s is read-only") % {"name": title}
    return format_html(
        '<svg class="sa-lock" role="img" aria-label="{}" viewBox="0 0 16 16"><title>{}</title>'
        '<path d="M4.5 7V5a3.5 3.5 0 0 1 7 0v2m-8 0h9v7h-9z"/></svg>',
        label,
        label,
    )


def switch_button(key: str, title: str, *, is_on: bool) -> SafeString:
    return format_html(
        '<button type="submit" form="sa-switch" name="{}" value="{}" id="switch-{}" class="sa-switch" role="switch"'
        ' aria-checked="{}" aria-label="{}"><span aria-hidden="true"></span></button>',
        "off" if is_on else "on",
        key,
        key,
        "true" if is_on else "false",
        _("Enable %(name)s") % {"name": title},
    )
