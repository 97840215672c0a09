"""Form fields for what definitions hold: lists that may be inherited, prompts, models, limits.

Everything works without JavaScript; the modules of `static/subagents` only add to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from subagents.definitions import INHERIT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from django.utils.safestring import SafeString

ALL: Final = "all"
NONE: Final = "none"
ONLY: Final = "only"
_PROMPT_ROWS: Final = 24


@dataclass(frozen=True, slots=True)
class Picked:
    """What a person picked: `choice` is all, none, only, or "" for nothing yet; `names` count for only."""

    choice: str
    names: tuple[str, ...] = ()

    @property
    def value(self) -> list[str] | None:
        """As a definition holds it: null is all, [] none."""
        if self.choice == ALL:
            return None
        return [] if self.choice == NONE else list(self.names)


UNDECIDED: Final = Picked("")


def picked(value: object) -> Picked:
    """Turn a definition's value into what is picked for it."""
    if isinstance(value, Picked):
        return value
    if value is None:
        return Picked(ALL)
    names = tuple(str(name) for name in value) if isinstance(value, list | tuple) else ()
    return Picked(ONLY if names else NONE, names)


class _ProjectTemplate(forms.Widget):
    """A widget whose template stands with the other templates of the product."""

    template_name: str

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return render_to_string(self.template_name, self.get_context(name, value, attrs))


class NamesInput(_ProjectTemplate):
    """A checkbox for each name that exists, and one for each chosen name that does not, which is flagged."""

    template_name = "admin/subagents/form/names.html"
    use_fieldset = True

    def __init__(self, *, known: Iterable[str] = (), complete: bool = True, attrs: Any = None) -> None:
        super().__init__(attrs)
        self.known = tuple(known)
        self.complete = complete  # False: names that are not known may exist all the same

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        context["widget"] |= self._options(picked(value))
        return context

    def _options(self, chosen: Picked) -> dict[str, Any]:
        known = [{"name": name, "checked": name in chosen.names} for name in self.known]
        unknown = [name for name in dict.fromkeys(chosen.names) if name not in self.known]
        return {"known": known, "unknown": unknown, "complete": self.complete}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        ticked = data.getlist(name) if hasattr(data, "getlist") else data.get(name, [])
        others = str(data.get(f"{name}-other", "")).split(",")
        names = [*ticked, *(other.strip() for other in others)]
        return Picked(ONLY, tuple(dict.fromkeys(name for name in names if name)))

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return False  # a checkbox that is not ticked is not sent

    def id_for_label(self, id_: str) -> str:
        return ""  # a group has a legend


class ThreeStateInput(NamesInput):
    """All, none, or only these: three radio buttons; the names show while the third one is chosen."""

    template_name = "admin/subagents/form/three_state.html"

    def __init__(self, *, labels: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.labels = labels

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        chosen = picked(value)
        choices = [
            {"value": choice, "label": self.labels[choice], "checked": choice == chosen.choice}
            for choice in (ALL, NONE, ONLY)
        ]
        context["widget"] |= {"choices": choices, "is_only": chosen.choice == ONLY}
        return context

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Picked:
        names = super().value_from_datadict(data, files, name).names
        choice = str(data.get(f"{name}-choice", ""))
        return Picked(choice if choice in (ALL, NONE, ONLY) else "", names)


class NamesField(forms.Field):
    """A list of names; an empty one is []. Ticked names keep the order they had before, new ones follow."""

    widget = NamesInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"required": False} | kwargs)
        self.before: tuple[str, ...] = ()

    def clean(self, value: Any) -> list[str] | None:
        return self._in_order(picked(value).names)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(picked(initial).value != picked(data).value)

    def offer(self, names: Iterable[str], *, complete: bool = True, before: Collection[str] | None = None) -> None:
        """Say which names exist, and which stand in the definition now, in its order."""
        self.widget.known, self.widget.complete = tuple(names), complete
        self.before = tuple(before or ())

    def _in_order(self, names: Iterable[str]) -> list[str]:
        chosen = dict.fromkeys(names)
        return [
            *(name for name in self.before if name in chosen),
            *(name for name in chosen if name not in self.before),
        ]


class ThreeStateField(NamesField):
    """null, [] or a list of names."""

    default_error_messages = {
        "unanswered": _("Choose one of the three."),
        "nothing": _("Nothing is chosen. Choose at least one name, or say that there shall be none."),
    }

    def __init__(self, *, labels: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(widget=ThreeStateInput(labels=labels), **kwargs)

    def clean(self, value: Any) -> list[str] | None:
        chosen = picked(value)
        if not chosen.choice:
            raise ValidationError(self.error_messages["unanswered"], code="unanswered")
        if chosen.choice == ONLY and not chosen.names:
            raise ValidationError(self.error_messages["nothing"], code="nothing")
        return self._in_order(chosen.names) if chosen.choice == ONLY else chosen.value


class PlainField(forms.CharField):
    """Text as it was typed. What is wrong with it is for the rules of definitions to say, as they say it everywhere."""

    def __init__(self, **kwargs: Any) -> None:
        # No maxlength attribute: a browser would cut what is pasted without a word.
        super().__init__(strip=False, **kwargs)

    def clean(self, value: Any) -> str:
        return self.to_python(value)

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value))


class TextField(PlainField):
    """Text kept byte for byte; only a browser's line ends are taken back. Longer text is refused, never cut."""

    def to_python(self, value: Any) -> str:
        return super().to_python(value).replace("\r\n", "\n").replace("\r", "\n")


class PromptInput(_ProjectTemplate, forms.Textarea):
    """A tall monospace field with the size of the text under it; `prompt-editor.js` keeps that current."""

    template_name = "admin/subagents/form/prompt.html"

    def __init__(self, *, longest: int, attrs: Any = None) -> None:
        defaults = {"rows": _PROMPT_ROWS, "spellcheck": "false", "class": "sa-prompt-input"}
        super().__init__(defaults | (attrs or {}))
        self.longest = longest

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        length = len(value or "")
        context["widget"] |= {
            "longest": self.longest,
            "longest_in_words": f"{self.longest:,}",
            "length_in_words": f"{length:,}",
        }
        return context


class ModelInput(_ProjectTemplate):
    """The configured models and `inherit`; a model that is not configured stays chosen and is flagged."""

    template_name = "admin/subagents/form/model.html"

    def __init__(self, attrs: Any = None) -> None:
        super().__init__(attrs)
        self.known: tuple[str, ...] = ()
        self.inherited = ""  # what `inherit` means now; "": no model can be used

    def offer(self, names: Iterable[str], *, inherited: str) -> None:
        self.known = tuple(name for name in names if name != INHERIT)
        self.inherited = inherited

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        choice = str(value or INHERIT)
        unknown = "" if choice in (INHERIT, *self.known) else choice
        context["widget"] |= {
            "known": self.known,
            "inherited": self.inherited,
            "choice": choice,
            "unknown": unknown,
        }
        return context


class SwitchField(forms.ChoiceField):
    """On, off, or "" for inherit. What is none of them is kept, so that the rules of definitions refuse it."""

    def __init__(self, **kwargs: Any) -> None:
        choices = [
            ("", pgettext_lazy("a switch", "inherit")),
            ("true", pgettext_lazy("a switch", "on")),
            ("false", pgettext_lazy("a switch", "off")),
        ]
        super().__init__(choices=choices, required=False, **kwargs)

    def clean(self, value: Any) -> bool | str | None:
        return _SWITCHED.get(value or "", value)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else value


_SWITCHED: Final[Mapping[str, bool | None]] = {"": None, "true": True, "false": False}
