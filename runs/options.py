"""Request options: what a chat switch, the API or a LangGraph `context` may ask of one run."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from engine.config.names import NAME_MAX_LENGTH, normalise_name
from engine.limits import clamp
from engine.text import clean
from runs.errors import BadInput
from subagents.leads import DEFAULT_LEAD

MAX_TOTAL = 50
# What the server itself notes in a run's metadata, whatever a client put there.
OF_THE_SERVER: Final = ("allowed_subagents", "clamped", "delegation_off")
_NAME_LENGTH = 120
_COUNTS: Final = ("max_concurrent_subagents", "max_total_subagents")
_EXACT_IN_JSON = 2**53  # larger whole numbers do not survive every reader of the run


def clean_options(options: Mapping[str, Any], *, path: str = "options") -> tuple[dict[str, Any], dict[str, list[int]]]:
    """The known options, checked, and the clamps: {"max_total_subagents": [asked, given]}.

    Wrong types raise BadInput with the field's path; numbers out of range are clamped. Options that belong to the
    server (owner, allow-list, ceilings) and unknown ones are ignored. max_concurrent_subagents is clamped again at
    run start, against subagents.max_concurrent_limit.
    """
    if not isinstance(options, Mapping):
        raise BadInput(path, _("expected an object, got %(value)s") % {"value": _shown(options)})
    cleaned = {
        name: read(options[name], f"{path}.{name}") for name, read in _READERS.items() if options.get(name) is not None
    }
    clamped: dict[str, list[int]] = {}
    for name in _COUNTS:
        if name in cleaned:
            asked = cleaned[name]
            cleaned[name] = clamp(asked, 1, MAX_TOTAL)
            if cleaned[name] != asked:
                clamped[name] = [asked, cleaned[name]]
    return cleaned, clamped


def agent_name(value: Any, path: str) -> str:
    """The one spelling of an agent's name; whether there is such an agent is another question. Raises BadInput."""
    written = _name(value, path, longest=NAME_MAX_LENGTH)
    if written.lower().replace("-", "_") == DEFAULT_LEAD:
        return DEFAULT_LEAD
    try:
        return normalise_name(written)
    except ValueError:
        return written


def _switch(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(path, _("expected true or false, got %(value)s") % {"value": _shown(value)})
    return value


def _number(value: Any, path: str) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(path, _("expected a whole number, got %(value)s") % {"value": _shown(value)})
    return clamp(value, -_EXACT_IN_JSON, _EXACT_IN_JSON)


def _name(value: Any, path: str, *, longest: int = _NAME_LENGTH) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadInput(path, _("expected a name, got %(value)s") % {"value": _shown(value)})
    if len(value) > longest:
        raise BadInput(path, _("a name has at most %(limit)d characters") % {"limit": longest})
    return clean(value.strip())


def _shown(value: Any) -> str:
    return clean(reprlib.repr(value))[:60]  # bounded in depth and length, whatever somebody sent


_READERS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "subagent_enabled": _switch,
    "thinking_enabled": _switch,
    **dict.fromkeys(_COUNTS, _number),
    "model_name": _name,
    "agent_name": agent_name,
}
