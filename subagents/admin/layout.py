"""How a form's fields are laid out, and how changes of fields are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from subagents import wording
from subagents.admin.widgets import UNDECIDED
from subagents.definitions import INHERIT, Definition, Source
from subagents.layers import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.forms import BoundField

    from engine.config.schema import Config
    from subagents.admin.forms import SubagentForm
    from subagents.admin.merging import Difference
    from subagents.catalogue import Entry
    from subagents.layers import Layers
    from subagents.models import Revision

# Title of a group; the form's fields in it, each with the path of its value.
_GROUPS: Final = (
    (
        gettext_lazy("Identity"),
        (("name", "name"), ("display_name", "display_name"), ("description", "description"), ("enabled", "enabled")),
    ),
    (
        gettext_lazy("Behaviour"),
        (
            ("system_prompt", "system_prompt"),
            ("model", "model"),
            ("tools", "tools"),
            ("disallowed_tools", "disallowed_tools"),
            ("skills", "skills"),
        ),
    ),
    (
        gettext_lazy("Limits"),
        (
            ("max_turns", "max_turns"),
            ("timeout_seconds", "timeout_seconds"),
            ("budget_enabled", "token_budget.enabled"),
            ("budget_max_tokens", "token_budget.max_tokens"),
            ("budget_warn_threshold", "token_budget.warn_threshold"),
        ),
    ),
)
_INHERITABLE: Final = (
    "max_turns",
    "timeout_seconds",
    "budget_enabled",
    "budget_max_tokens",
    "budget_warn_threshold",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One field as laid out; `notes` say what overrides it."""

    field: BoundField
    path: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FormGroup:
    title: Any
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A field that somebody else changed: what it was, what it is, and which value the form holds now."""

    label: Any
    before: str
    stored: str
    is_kept: bool


def groups(form: SubagentForm, entry: Entry | None, config: Config) -> tuple[FormGroup, ...]:
    """Lay the form out, with the inherited values where a field is empty, and the overrides of config.yaml.

    `entry` is the one being edited, None for a new one.
    """
    _show_inherited(form, inherited(config))
    layers = entry.layers if entry is not None and not entry.problems else {}
    return tuple(
        FormGroup(
            title,
            tuple(Row(form[name], path, _overrides(layers, path)) for name, path in fields if name in form.fields),
        )
        for title, fields in _GROUPS
    )


def inherited(config: Config) -> Layers:
    """Return the layers below a managed definition that says nothing itself."""
    nothing = Definition(name="", source=Source.MANAGED, description="", system_prompt="", model=INHERIT)
    return resolve(nothing, config)[1]


def bearable(document: Mapping[str, object]) -> dict[str, Any]:
    """Keep of a broken document what a form can show: each value that is of its field's kind.

    Where tools or skills cannot be read nothing is chosen: a default would give more than anybody meant to.
    """
    kept = {field: value for field, value in document.items() if field in _KINDS and isinstance(value, _KINDS[field])}
    return {**dict.fromkeys(("tools", "skills"), UNDECIDED), **kept}


_KINDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("display_name", "description", "system_prompt", "model"), str),
    **dict.fromkeys(("tools", "skills"), list | None),
    "disallowed_tools": list,
    "max_turns": int | str | None,
    "timeout_seconds": int | str | None,
    "token_budget": dict | None,
    "enabled": bool,
}


def change(
    difference: Difference,
    *,
    shows_prompt: bool,
    labels: Mapping[str, object],
    say: Callable[..., str],
) -> Change:
    """Tell one difference in words. A prompt is told by its length, or not at all."""
    return Change(
        label=labels.get(difference.field, difference.field),
        before=say(difference.field, difference.before, shows_prompt=shows_prompt),
        stored=say(difference.field, difference.stored, shows_prompt=shows_prompt),
        is_kept=difference.is_kept,
    )


def value_in_words(field: str, value: object, *, shows_prompt: bool = True) -> str:
    """Say one value of a document."""
    if field == "system_prompt":
        return wording.length_in_words(str(value or "")) if shows_prompt else _("hidden")
    if field == "token_budget":
        return _budget_in_words(value)
    if field in {"tools", "skills", "disallowed_tools"}:
        return wording.in_words(field, value if isinstance(value, list | tuple | None) else [value])
    if value is None or value == "":
        is_limit = field in {"max_turns", "timeout_seconds"}
        return pgettext("a limit", "inherit") if is_limit else pgettext("a text", "empty")
    return wording.in_words(field, value)


def author_of(revision: Revision) -> str:
    """Name who made a revision: the account, or what acted in its place."""
    author = revision.author
    return author.get_username() if author else revision.author_label or _("somebody")


def _budget_in_words(value: object) -> str:
    if not isinstance(value, dict) or not value:
        return pgettext("a limit", "inherit")
    return "; ".join(
        f"{wording.FIELDS.get(f'token_budget.{field}', field)}: {wording.in_words(f'token_budget.{field}', said)}"
        for field, said in value.items()
    )


def _show_inherited(form: SubagentForm, layers: Layers) -> None:
    for name in _INHERITABLE:
        path = name.replace("budget_", "token_budget.")
        said = wording.in_words(path, layers[path][0].value)
        text = _("inherit: %(value)s") % {"value": said}
        field: Any = form.fields[name]
        if name == "budget_enabled":
            field.choices = [("", text), *list(field.choices)[1:]]
        else:
            field.widget.attrs["placeholder"] = text


def _overrides(layers: Mapping[str, Any], path: str) -> tuple[str, ...]:
    stack = layers.get(path, ())
    if not stack or not stack[0].name.startswith("subagents.agents."):
        return ()
    facts = {"setting": stack[0].name, "value": wording.in_words(path, stack[0].value)}
    return (_("config.yaml %(setting)s = %(value)s wins over what stands here.") % facts,)
