"""The form of one custom agent: what it shares with subagents, and its scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from subagents.admin.agents.reach import choosable
from subagents.admin.forms import DocumentForm
from subagents.admin.layout import FormGroup, Row
from subagents.admin.widgets import (
    ALL,
    NONE,
    ONLY,
    ModelInput,
    Picked,
    PlainField,
    TextField,
    ThreeStateField,
    ThreeStateInput,
    picked,
)
from subagents.kinds import AGENT
from subagents.scope import ALL_ENABLED, NOBODY, only

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subagents.catalogue import Catalogue
    from subagents.scope import Scope

_GROUPS: Final = (
    (_("Identity"), ("name", "display_name", "description", "enabled")),
    (_("Behaviour"), ("system_prompt", "model", "tools", "skills")),
)
SCOPE_FIELDS: Final = ("subagent_enabled", "allowed_subagents")


class LeadModelInput(ModelInput):
    """`inherit` of a lead is the default model, since nobody is above it."""

    template_name = "admin/subagents/customagent/model.html"


class ScopeInput(ThreeStateInput):
    """All enabled, none, or only those ticked: a checkbox for each subagent with its source, and for stale names."""

    template_name = "admin/subagents/customagent/scope.html"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.catalogue: Catalogue | None = None

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        options = choosable(self.catalogue, picked(value).names) if self.catalogue is not None else ()
        known = {option.name for option in options}
        missing = [chosen for chosen in dict.fromkeys(picked(value).names) if chosen not in known]
        context["widget"] |= {"options": options, "missing": missing}
        return context


class ScopeField(ThreeStateField):
    """null: all enabled; []: none; else only these. Names that nothing bears are kept."""

    def __init__(self, *, labels: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(labels=labels, **kwargs)
        self.widget: Any = ScopeInput(labels=labels)


class AgentForm(DocumentForm):
    """One custom agent."""

    name = PlainField(
        label=_("Name"),
        required=True,
        widget=forms.TextInput(attrs={"class": "sa-input", "autocapitalize": "none", "spellcheck": "false"}),
        help_text=_("Letters a-z, digits and hyphens. Programs call it by this name, so it cannot be changed later."),
    )
    description = TextField(
        label=_("Description"),
        required=False,
        widget=forms.Textarea(attrs={"class": "sa-input", "rows": 3}),
        help_text=_("What it is for. People see it when they choose an agent in the chat."),
    )
    model = PlainField(label=_("Model"), required=False, widget=LeadModelInput(attrs={"class": "sa-input"}))
    tools = ThreeStateField(
        label=_("Tools"),
        labels={
            ALL: pgettext_lazy("choice of tools", "All tools"),
            NONE: pgettext_lazy("choice of tools", "No tools"),
            ONLY: pgettext_lazy("choice of tools", "Only these"),
        },
        help_text=_("Its subagents never get a tool that it lacks."),
    )
    subagent_enabled = forms.BooleanField(
        label=_("May delegate"),
        required=False,
        help_text=_("Off: it does all the work itself. No request can switch it on again."),
    )
    allowed_subagents = ScopeField(
        label=_("Subagents it may call"),
        labels={
            ALL: pgettext_lazy("choice of subagents", "All enabled, also those that are made later"),
            NONE: pgettext_lazy("choice of subagents", "None"),
            ONLY: pgettext_lazy("choice of subagents", "Only selected"),
        },
    )

    def __init__(self, *args: Any, catalogue: Catalogue, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["allowed_subagents"].widget.catalogue = catalogue  # type: ignore[attr-defined]
        before = self.base.get("allowed_subagents")
        listed = [name for name in before if isinstance(name, str)] if isinstance(before, list | tuple) else None
        self.fields["allowed_subagents"].offer((), before=listed)  # type: ignore[attr-defined]

    @classmethod
    def initial_of(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return super().initial_of({"subagent_enabled": True, **document})

    def validate(self, document: Mapping[str, Any]) -> object:
        return AGENT.validate(document)

    def groups(self) -> tuple[FormGroup, ...]:
        """The fields as laid out, but those of the scope, which stand beside what they resolve to."""
        return tuple(
            FormGroup(title, tuple(Row(self[name], name, ()) for name in names if name in self.fields))
            for title, names in _GROUPS
        )

    def scope_rows(self) -> tuple[Row, ...]:
        return tuple(Row(self[name], name, ()) for name in SCOPE_FIELDS)

    def chosen_scope(self) -> tuple[Scope, bool]:
        """What stands in the form now, saved or not: the scope, and whether the agent may delegate."""
        return scope_picked(picked(self["allowed_subagents"].value())), bool(self["subagent_enabled"].value())


def scope_picked(chosen: Picked) -> Scope:
    """The scope that is picked; of nothing picked yet, nobody."""
    if chosen.choice == ALL:
        return ALL_ENABLED
    return only(*chosen.names) if chosen.choice == ONLY else NOBODY
