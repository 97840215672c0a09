"""How one entry's values and their layers are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from subagents import wording

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.utils.safestring import SafeString

    from subagents.catalogue import Entry
    from subagents.layers import Layer

_GROUPS: Final = (
    (_("Identity"), ("name", "display_name", "description", "enabled")),
    (_("Behaviour"), ("system_prompt", "model", "tools", "disallowed_tools", "skills")),
    (
        _("Limits"),
        (
            "max_turns",
            "timeout_seconds",
            "token_budget.enabled",
            "token_budget.max_tokens",
            "token_budget.warn_threshold",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class LayerLine:
    """One layer as shown: where from, and what it says."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field: the value in force with the layer it comes from, and the layers that lost, strongest first."""

    field: str
    label: object
    value: str
    won: str
    lost: tuple[LayerLine, ...]


@dataclass(frozen=True, slots=True)
class Group:
    title: object
    lines: tuple[FieldLine, ...]


def groups(entry: Entry) -> tuple[Group, ...]:
    """Lay out every field of an entry with all its layers."""
    return tuple(Group(title, tuple(_line(entry, field) for field in fields)) for title, fields in _GROUPS)


def with_overridden(entry: Entry, field: str, say: Callable[[Any], str]) -> SafeString:
    """Show a value in force; one that config.yaml overrides is preceded by what would hold without it, struck out."""
    layers = entry.layers[field]
    if field not in entry.overridden or len(layers) < 2 or layers[1].value == layers[0].value:
        return format_html("<span>{}</span>", say(layers[0].value))
    return format_html(
        '<span title="{}"><del>{}</del> <ins>{}</ins></span>',
        wording.layer_label(layers[0]),
        say(layers[1].value),
        say(layers[0].value),
    )


def digest(entry: Entry) -> str:
    """Say in one line what a run gets, and how much of it config.yaml overrides."""
    effective = entry.effective
    parts = [
        wording.in_words("max_turns", effective.max_turns),
        wording.in_words("timeout_seconds", effective.timeout_seconds),
        wording.in_words("model", effective.model),
    ]
    if entry.overridden:
        count = len(entry.overridden)
        text = ngettext(
            "%(count)s value overridden by config.yaml", "%(count)s values overridden by config.yaml", count
        )
        parts.append(text % {"count": count})
    return " · ".join(parts)


def _line(entry: Entry, field: str) -> FieldLine:
    winner, *others = entry.layers[field]
    return FieldLine(
        field=field,
        label=wording.FIELDS[field],
        value=_value(field, winner),
        won=wording.layer_label(winner),
        lost=tuple(LayerLine(wording.layer_label(layer), _value(field, layer)) for layer in others),
    )


def _value(field: str, layer: Layer) -> str:
    if field == "system_prompt":
        # The text itself stands below, for those who may read it.
        return wording.length_in_words(str(layer.value))
    if field == "display_name" and not layer.value:
        return gettext("none: the name is shown")
    return wording.in_words(field, layer.value)
