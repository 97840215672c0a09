"""What page, API and command line call things, and every sentence of engine and catalogue, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext, ngettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from engine.reasons import Reason, reason_of
from subagents.catalogue import State
from subagents.definitions import INHERIT, Source
from subagents.errors import InvalidDefinition, NameTaken, NotFound, ReadOnly, StaleVersion, StorageFailed
from subagents.layers import DEFAULT, Layer
from subagents.notes import SENTENCES, Note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCES: Final = {
    Source.BUILTIN: pgettext_lazy("source of a subagent", "Built-in"),
    Source.CONFIG: pgettext_lazy("source of a subagent", "config.yaml"),
    Source.MANAGED: pgettext_lazy("source of a subagent", "Managed"),
    Source.GRAPH: pgettext_lazy("source of a subagent", "Graph"),
    Source.REMOTE: pgettext_lazy("source of a subagent", "Remote"),
}
STATES: Final = {
    State.ACTIVE: pgettext_lazy("state of a subagent", "Active"),
    State.OVERRIDDEN: pgettext_lazy("state of a subagent", "Active, overridden"),
    State.SHADOWED: pgettext_lazy("state of a subagent", "Shadowed"),
    State.DISABLED: pgettext_lazy("state of a subagent", "Disabled"),
    State.UNAVAILABLE: pgettext_lazy("state of a subagent", "Unavailable"),
    State.INVALID: pgettext_lazy("state of a subagent", "Invalid"),
}
# A shape besides the word and the colour, for whoever does not see colours.
SHAPES: Final = {
    State.ACTIVE: "●",
    State.OVERRIDDEN: "◐",
    State.SHADOWED: "▲",
    State.DISABLED: "○",
    State.UNAVAILABLE: "◇",
    State.INVALID: "✕",
}
FIELDS: Final[Mapping[str, object]] = {
    "name": _("Name"),
    "display_name": _("Display name"),
    "description": _("When to use it"),
    "enabled": _("Enabled"),
    "model": _("Model"),
    "tools": _("Tools"),
    "disallowed_tools": _("Disallowed tools"),
    "skills": _("Skills"),
    "system_prompt": _("System prompt"),
    "max_turns": _("Turns at most"),
    "timeout_seconds": _("Time at most"),
    "token_budget.enabled": _("Token budget"),
    "token_budget.max_tokens": _("Tokens at most"),
    "token_budget.warn_threshold": _("Warning at"),
}

# The fields of a document, in the order they are shown.
DOCUMENT_FIELDS: Final[Mapping[str, object]] = {
    **{field: label for field, label in FIELDS.items() if "." not in field},
    "token_budget": FIELDS["token_budget.enabled"],
}


def say(said: Note | str) -> str:
    """Return a note's sentence, or a reason's, in the reader's language. Text that is neither stays as it is."""
    if isinstance(said, Note):
        facts = {name: say(fact) for name, fact in said.facts.items()}
        if "source" in facts:
            facts["source"] = str(SOURCES[Source(facts["source"])])
        return gettext(SENTENCES[said.code]) % facts
    if not isinstance(said, Reason):
        return said
    sentence = gettext(said.template)
    return sentence % {name: say(fact) for name, fact in said.facts.items()} if said.facts else sentence


def layer_label(layer: Layer) -> str:
    """Name a layer: a word for what is not in the file, the setting's path for what is."""
    if layer.name == DEFAULT:
        return pgettext("layer of a value", "default")
    if layer.name in {Source.BUILTIN, Source.MANAGED}:
        return str(SOURCES[Source(layer.name)])
    return f"config.yaml › {layer.name}"


def in_words(field: str, value: object) -> str:
    """Say a field's value; lists of names are joined. A value of another type than expected is shown as it is."""
    if field in {"tools", "skills", "disallowed_tools"}:
        return _names_in_words(field, value)
    if isinstance(value, bool):
        return pgettext("a switch", "on") if value else pgettext("a switch", "off")
    if isinstance(value, float):
        return f"{value * 100:g} %"
    if isinstance(value, int):
        return _number_in_words(field, value)
    if field == "model" and value == INHERIT:
        return gettext("inherit: the lead's model")
    return str(value)


def length_in_words(text: str) -> str:
    length = len(text)
    return ngettext("%(count)s character", "%(count)s characters", length) % {"count": number(length)}


def shortlist(names: Sequence[str], most: int = 5) -> str:
    """Join names; of many only the first ones, with an ellipsis."""
    return ", ".join(names[:most]) + ("…" if len(names) > most else "")


def refusal(refused: Exception) -> str:
    """Say why something was not done, in the reader's language."""
    if isinstance(refused, NameTaken):
        return gettext("The name %(name)s is held by another subagent (%(source)s).") % {
            "name": refused.name,
            "source": SOURCES[refused.source],
        }
    if isinstance(refused, NotFound):
        return gettext("It has been deleted in the meantime.")
    if isinstance(refused, StaleVersion):
        return gettext("Somebody else changed it in the meantime.")
    if isinstance(refused, InvalidDefinition):
        return gettext("It cannot be read. Open it to repair or delete it.")
    if isinstance(refused, ReadOnly):
        return gettext("It is read-only here.")
    if isinstance(refused, StorageFailed):
        return gettext("It could not be stored: %(reason)s") % {"reason": say(reason_of(refused))}
    return say(reason_of(refused))


def turns_in_words(turns: int) -> str:
    return ngettext("%(count)s turn", "%(count)s turns", turns) % {"count": number(turns)}


def seconds_in_words(seconds: int) -> str:
    return gettext("%(count)s s") % {"count": number(seconds)}


def number(value: int) -> str:
    """Group by thousands in every language: Chinese formats would leave seven digits in a row."""
    return f"{value:,}"


def _number_in_words(field: str, value: int) -> str:
    if field == "max_turns":
        return turns_in_words(value)
    return seconds_in_words(value) if field == "timeout_seconds" else number(value)


def _names_in_words(field: str, value: object) -> str:
    if value is None:
        return gettext("all of the lead's tools") if field == "tools" else gettext("all enabled skills")
    names = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return names or pgettext("no tools or skills", "none")
