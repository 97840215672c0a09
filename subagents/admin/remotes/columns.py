"""The columns of the list of remote agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from subagents import wording
from subagents.admin.columns import DefinitionColumns, moment, source_badge, who
from subagents.adminkit import display

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from subagents.remote_contacts import Contact


class RemoteColumns(DefinitionColumns):
    """What the list shows of a remote agent."""

    @display(description=_("Agent"), ordering="name")
    def agent(self, obj: Any) -> SafeString:
        return who(obj.entry.agent)

    @display(description=_("Source"), ordering="source")
    def source(self, obj: Any) -> SafeString:
        return source_badge(obj.entry.source)

    @display(description=_("Where it is"), ordering="where")
    def where(self, obj: Any) -> SafeString:
        entry = obj.entry
        if entry.problems:
            return format_html("{}", "–")
        place = entry.agent.host or gettext("this deployment")
        return format_html('<span class="sa-used">{}<span class="sa-sub">{}</span></span>', place, entry.agent.graph_id)

    @display(description=_("Last contact"))
    def contact(self, obj: Any) -> SafeString:
        return contact_in_words(getattr(obj, "use", None), whole=False)


def contact_in_words(contact: Contact | None, *, whole: bool = True) -> SafeString:
    """When it was last spoken to and what came of it: a word, a shape and, as a whole, the sentence."""
    if contact is None:
        return format_html("{}", gettext("never"))
    badge = format_html(
        '<span class="sa-badge sa-state-{}"><span aria-hidden="true">{}</span> {}</span>',
        "invalid" if contact.fault else "active",
        "✕" if contact.fault else "●",
        gettext("failed") if contact.fault else gettext("answered"),
    )
    return format_html(
        '<span class="sa-used">{} {}<span class="sa-sub">{}</span></span>',
        badge,
        moment(contact.at),
        wording.say(contact.sentence) if whole and contact.sentence else "",
    )
