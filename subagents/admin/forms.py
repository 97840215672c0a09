"""Forms over documents: what a definition says, field by field, judged by the rules of definitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from engine.reasons import located
from engine.tools.names import DELEGATION_TOOLS
from subagents.admin.widgets import (
    ALL,
    NONE,
    ONLY,
    ModelInput,
    NamesField,
    PlainField,
    PromptInput,
    SwitchField,
    TextField,
    ThreeStateField,
)
from subagents.errors import InvalidDefinition
from subagents.validation import validate_definition
from subagents.wording import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subagents.admin.offered import Offered

LONGEST_PROMPT: Final = 200_000
_BUDGET: Final = ("enabled", "max_tokens", "warn_threshold")
_NUMBERS: Final = frozenset({"max_turns", "timeout_seconds", "budget_max_tokens", "budget_warn_threshold"})
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,299})(\.[0-9]{1,17})?")  # as JSON writes one, of a bearable length
_NARROW: Final = {"class": "sa-input sa-narrow"}


def number_field(*, label: Any, most: int | float, step: str = "1", help_text: Any = "") -> forms.CharField:
    """A number as typed, "" for inherit: what is wrong with it is for the rules of definitions to say."""
    attrs = {**_NARROW, "min": "1" if step == "1" else "0", "max": str(most), "step": step, "inputmode": "decimal"}
    return PlainField(label=label, required=False, widget=forms.NumberInput(attrs=attrs), help_text=help_text)


class DocumentForm(forms.Form):
    """The base of the forms for subagents and custom agents: the fields that both have.

    `base` is the document that is being edited or copied. Its prompt is kept where the form shows none, its texts
    are kept byte for byte where nothing was typed, its lists keep their order. `shown` is what the form begins with
    where that is something else; `version` is that of what it was opened on.
    """

    name = PlainField(
        label=_("Name"),
        required=True,
        widget=forms.TextInput(attrs={"class": "sa-input", "autocapitalize": "none", "spellcheck": "false"}),
        help_text=_("Letters a-z, digits and hyphens. The lead calls it by this name, so it cannot be changed later."),
    )
    display_name = TextField(
        label=_("Display name"),
        required=False,
        widget=forms.TextInput(attrs={"class": "sa-input"}),
        help_text=_("Any text. It is shown to people instead of the name."),
    )
    description = TextField(
        label=_("When to use it"),
        required=True,
        widget=forms.Textarea(attrs={"class": "sa-input", "rows": 4}),
    )
    enabled = forms.BooleanField(label=_("Enabled"), required=False)
    system_prompt = TextField(
        label=_("System prompt"),
        required=True,
        widget=PromptInput(longest=LONGEST_PROMPT),
        help_text=_("Taken as it is: braces, percent signs and tags have no meaning here."),
    )
    model = PlainField(label=_("Model"), required=False, widget=ModelInput(attrs={"class": "sa-input"}))
    tools = ThreeStateField(
        label=_("Tools"),
        labels={
            ALL: pgettext_lazy("choice of tools", "All of the lead's tools"),
            NONE: pgettext_lazy("choice of tools", "No tools"),
            ONLY: pgettext_lazy("choice of tools", "Only these"),
        },
    )
    skills = ThreeStateField(
        label=_("Skills"),
        labels={
            ALL: pgettext_lazy("choice of skills", "All enabled skills"),
            NONE: pgettext_lazy("choice of skills", "No skills"),
            ONLY: pgettext_lazy("choice of skills", "Only these"),
        },
    )
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    # The path of a fault, where it is not the name of the form's field.
    paths: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        *args: Any,
        offered: Offered,
        base: Mapping[str, Any] | None = None,
        named: bool = False,
        hides_prompt: bool = False,
        shown: Mapping[str, Any] | None = None,
        version: str = "",
        **kwargs: Any,
    ) -> None:
        self.base = dict(base or {})
        kwargs.setdefault("initial", {**self.initial_of(self.base if shown is None else shown), "version": version})
        super().__init__(*args, **kwargs)
        if named:
            del self.fields["name"]
        if hides_prompt:
            del self.fields["system_prompt"]
        self._offer(offered)

    @classmethod
    def initial_of(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the fields show for a document, which need not be a valid one."""
        return {"enabled": True, **document}

    def document(self) -> dict[str, Any]:
        """Return the whole document that the form describes."""
        said = {field: self._said(field) for field in self.plain_fields() if field in self.fields}
        return {**self.base, **said}

    def changes(self) -> dict[str, Any]:
        """Return the keys of the document that differ from the one being edited."""
        return {key: value for key, value in self.document().items() if self.base.get(key) != value}

    def plain_fields(self) -> tuple[str, ...]:
        """Name the fields that stand in the document under their own name."""
        return tuple(name for name in self.fields if name != "version")

    def validate(self, document: Mapping[str, Any]) -> object:
        """Raises InvalidDefinition."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        try:
            self.validate(self.document())
        except InvalidDefinition as refused:
            self.add_faults(refused)
        return cleaned

    def add_faults(self, refused: InvalidDefinition) -> None:
        """Show each fault beside its field. Those of a field that already has an error say nothing new."""
        before = set(self.errors)
        for path, sentence in refused.faults:
            field = self.field_of(path)
            if field is None:
                self.add_error(None, say(located(path, sentence)))
            elif field not in before:
                self.add_error(field, say(sentence))

    def field_of(self, path: str) -> str | None:
        """Return the form's field for the path of a fault; None when no field of the form is meant."""
        field = self.paths.get(path, path.split(".")[0].split("[")[0])
        return field if field in self.fields else None

    def _said(self, field: str) -> Any:
        value = self.cleaned_data.get(field)
        if isinstance(self.fields[field], TextField):
            kept = self.base.get(field)
            return kept if isinstance(kept, str) and _one_line_end(kept) == value else value
        return value

    def _offer(self, offered: Offered) -> None:
        self._offer_names("tools", offered.tools, complete=offered.tools_complete)
        self._offer_names("skills", offered.skills)
        self.fields["model"].widget.offer(offered.models, inherited=offered.inherited_model)  # type: ignore[attr-defined]

    def _offer_names(self, field: str, names: tuple[str, ...], *, complete: bool = True) -> None:
        before = self.base.get(field)
        listed = [name for name in before if isinstance(name, str)] if isinstance(before, list | tuple) else None
        self.fields[field].offer(names, complete=complete, before=listed)  # type: ignore[attr-defined]


class SubagentForm(DocumentForm):
    """One managed subagent."""

    disallowed_tools = NamesField(
        label=_("Disallowed tools"),
        help_text=format_lazy(
            _("Besides those that no subagent ever gets: {names}."), names=", ".join(DELEGATION_TOOLS)
        ),
    )
    max_turns = number_field(label=_("Turns at most"), most=1_000, help_text=_("Model calls of one run, 1 to 1,000."))
    timeout_seconds = number_field(
        label=_("Seconds at most"), most=86_400, help_text=_("From the first moment of execution, 1 to 86,400.")
    )
    budget_enabled = SwitchField(label=_("Token budget"), widget=forms.Select(attrs=_NARROW))
    budget_max_tokens = number_field(label=_("Tokens at most"), most=10**12)
    budget_warn_threshold = number_field(
        label=_("Warning at"), most=1, step="any", help_text=_("A fraction of the tokens: 0.7 is 70 %.")
    )

    paths = {f"token_budget.{field}": f"budget_{field}" for field in _BUDGET} | {"token_budget": "budget_max_tokens"}

    def validate(self, document: Mapping[str, Any]) -> object:
        return validate_definition(document)

    @classmethod
    def initial_of(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        budget = document.get("token_budget")
        said = budget if isinstance(budget, dict) else {}
        return super().initial_of(document) | {f"budget_{field}": said.get(field) for field in _BUDGET}

    def plain_fields(self) -> tuple[str, ...]:
        return tuple(field for field in super().plain_fields() if not field.startswith("budget_"))

    def document(self) -> dict[str, Any]:
        budget = {field: self._said(f"budget_{field}") for field in _BUDGET}
        said = {field: value for field, value in budget.items() if value is not None}
        kept = self.base.get("token_budget")
        return super().document() | {"token_budget": said or (kept if kept == {} else None)}

    def _said(self, field: str) -> Any:
        value = super()._said(field)
        return _number(value) if field in _NUMBERS else value

    def _offer(self, offered: Offered) -> None:
        super()._offer(offered)
        self._offer_names("disallowed_tools", offered.tools, complete=offered.tools_complete)


def _one_line_end(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _number(typed: str) -> int | float | str | None:
    """What was typed as the number it is in every other place; anything else is left to the rules to refuse."""
    if not _NUMBER.fullmatch(typed):
        return typed or None
    return float(typed) if "." in typed else int(typed)
