"""The fields of custom agents in words, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from subagents import wording
from subagents.admin import layout
from subagents.definitions import INHERIT
from subagents.errors import NameTaken

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS: Final[Mapping[str, object]] = {
    "name": gettext_lazy("Name"),
    "display_name": gettext_lazy("Display name"),
    "description": gettext_lazy("Description"),
    "enabled": gettext_lazy("Enabled"),
    "system_prompt": gettext_lazy("System prompt"),
    "model": gettext_lazy("Model"),
    "tools": gettext_lazy("Tools"),
    "skills": gettext_lazy("Skills"),
    "subagent_enabled": gettext_lazy("May delegate"),
    "allowed_subagents": gettext_lazy("Subagents it may call"),
}


def value_in_words(field: str, value: object, *, shows_prompt: bool = True) -> str:
    """Say one value of an agent's document."""
    if field == "allowed_subagents":
        if value is None:
            return pgettext("choice of subagents", "All enabled, also those that are made later")
        names = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        return names or pgettext("choice of subagents", "None")
    if field == "tools" and value is None:
        return pgettext("choice of tools", "All tools")
    if field == "model" and value == INHERIT:
        return _("inherit: the first available model")
    return layout.value_in_words(field, value, shows_prompt=shows_prompt)


def refusal(refused: Exception) -> str:
    """Say why something was not done."""
    if isinstance(refused, NameTaken):
        return _("Another custom agent has this name. Choose another one.")
    return wording.refusal(refused)
