"""The fields of remote agents in words, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from engine.remote.keys import MASK
from subagents import wording

FIELDS: Final[Mapping[str, object]] = {
    "name": gettext_lazy("Name"),
    "display_name": gettext_lazy("Display name"),
    "description": gettext_lazy("When to use it"),
    "enabled": gettext_lazy("Enabled"),
    "url": gettext_lazy("Address"),
    "graph_id": gettext_lazy("Graph or assistant"),
    "headers": gettext_lazy("Headers"),
    "use_env_key": gettext_lazy("Key of the environment"),
    "update_strategy": gettext_lazy("When it gets new instructions"),
    "webhook": gettext_lazy("Webhook"),
    "notify_parent": gettext_lazy("Tells its parent"),
    "mode": gettext_lazy("What it is given"),
}
ENV_KEY: Final = {
    "auto": gettext_lazy("by itself: only to LangSmith and LangGraph Platform"),
    "true": gettext_lazy("always send it to this address"),
    "false": gettext_lazy("never send it"),
}
STRATEGY: Final = {
    "interrupt": gettext_lazy("interrupt: what runs is stopped, the new run has the whole history"),
    "enqueue": gettext_lazy("enqueue: what runs is finished first"),
}
MODE: Final = {
    "isolated": gettext_lazy("isolated: the text of the task"),
    "fork": gettext_lazy("fork: read, and works like isolated"),
}
_CHOICES: Final[Mapping[str, Mapping[str, object]]] = {
    "use_env_key": ENV_KEY,
    "update_strategy": STRATEGY,
    "mode": MODE,
}


def value_in_words(field: str, value: object) -> str:
    """Say one value of a document whose headers are masked already."""
    if field == "headers":
        return _headers(value)
    if field in _CHOICES:
        written = str(value).lower() if isinstance(value, bool) else str(value)
        return str(_CHOICES[field].get(written, value))
    if value is None or value == "":
        return _("this deployment") if field == "url" else pgettext("a text", "empty")
    return wording.in_words(field, value)


def _headers(value: object) -> str:
    if not isinstance(value, Mapping) or not value:
        return pgettext("headers", "none")
    return "\n".join(f"{name}: {shown if str(shown).startswith(MASK) else MASK}" for name, shown in value.items())
