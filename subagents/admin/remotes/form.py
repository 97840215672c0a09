"""The form of one remote agent. Values of headers go in and never come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from subagents.admin.forms import DocumentForm
from subagents.admin.layout import FormGroup, Row
from subagents.admin.remotes.words import ENV_KEY, MODE, STRATEGY
from subagents.admin.widgets import PlainField
from subagents.kinds import REMOTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.safestring import SafeString

    from subagents.admin.offered import Offered

_GROUPS: Final = (
    (_("Identity"), ("name", "display_name", "description", "enabled")),
    (_("Where it is"), ("url", "graph_id", "headers", "use_env_key")),
    (_("Its tasks"), ("update_strategy", "webhook", "notify_parent", "mode")),
)
_FREE_ROWS: Final = 3
_TEXT: Final = {"class": "sa-input", "autocapitalize": "none", "spellcheck": "false", "autocomplete": "off"}


class HeadersInput(forms.Widget):
    """A row for each header with its mask, to be replaced or taken away, and empty rows for new ones."""

    template_name = "admin/subagents/remoteagent/headers.html"
    use_fieldset = True

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        known = value if isinstance(value, dict) else {}
        context["widget"] |= {"known": list(known.items()), "free": range(len(known), len(known) + _FREE_ROWS)}
        return context

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return render_to_string(self.template_name, self.get_context(name, value, attrs))

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, str]:
        """The headers as typed; one whose value was left empty keeps its mask, which stands for what is stored."""
        found: dict[str, str] = {}
        for index in range(_most_rows(data, name)):
            header = str(data.get(f"{name}-{index}-name", "")).strip()
            if not header or data.get(f"{name}-{index}-gone"):
                continue
            typed = str(data.get(f"{name}-{index}-value", "")).strip()
            found[header] = typed or str(data.get(f"{name}-{index}-mask", ""))
        return found

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return False

    def id_for_label(self, id_: str) -> str:
        return ""


class HeadersField(forms.Field):
    widget = HeadersInput

    def clean(self, value: Any) -> dict[str, str]:
        return value if isinstance(value, dict) else {}


class RemoteForm(DocumentForm):
    """One remote agent."""

    system_prompt = None  # type: ignore[assignment]
    model = None  # type: ignore[assignment]
    tools = None  # type: ignore[assignment]
    skills = None  # type: ignore[assignment]
    url = PlainField(
        label=_("Address"),
        required=False,
        widget=forms.TextInput(attrs={**_TEXT, "inputmode": "url", "placeholder": "https://agents.example.com"}),
        help_text=_(
            "Of an Agent Protocol server. Empty: a graph or agent of this deployment. Private addresses are reached"
            " only where outbound.allow_private in config.yaml says so."
        ),
    )
    graph_id = PlainField(
        label=_("Graph or assistant"),
        required=True,
        widget=forms.TextInput(attrs=_TEXT),
        help_text=_("The name of the graph on that server, or the id of an assistant."),
    )
    headers = HeadersField(
        label=_("Headers"),
        required=False,
        help_text=_(
            "Sent with each request. Values are stored encrypted, for this address only, and are never shown again."
        ),
    )
    use_env_key = forms.ChoiceField(
        label=_("Key of the environment"),
        choices=list(ENV_KEY.items()),
        widget=forms.Select(attrs={"class": "sa-input"}),
        help_text=_("LANGGRAPH_API_KEY or LANGSMITH_API_KEY, where one is set."),
    )
    update_strategy = forms.ChoiceField(
        label=_("When it gets new instructions"),
        choices=list(STRATEGY.items()),
        widget=forms.Select(attrs={"class": "sa-input"}),
    )
    webhook = PlainField(
        label=_("Webhook"),
        required=False,
        widget=forms.TextInput(attrs={**_TEXT, "inputmode": "url"}),
        help_text=_("That server calls this address when a run ends."),
    )
    notify_parent = forms.BooleanField(label=_("Tells its parent"), required=False)
    mode = forms.ChoiceField(
        label=_("What it is given"), choices=list(MODE.items()), widget=forms.Select(attrs={"class": "sa-input"})
    )

    @classmethod
    def initial_of(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        defaults = {"notify_parent": True, "update_strategy": "interrupt", "mode": "isolated"}
        shown = super().initial_of(defaults | REMOTE.shown(document))
        return {**shown, "use_env_key": str(shown.get("use_env_key", "auto")).lower()}

    def document(self) -> dict[str, Any]:
        said = super().document()
        key = said["use_env_key"]
        return {**said, "use_env_key": {"true": True, "false": False}.get(key, key)}

    def changes(self) -> dict[str, Any]:
        """Return the keys that differ; headers whose masks all stand as they were shown do not."""
        changed = super().changes()
        if changed.get("headers") == REMOTE.shown(self.base).get("headers", {}):
            changed.pop("headers", None)
        return changed

    def validate(self, document: Mapping[str, Any]) -> object:
        return REMOTE.validate(_completed(document, self.base))

    def groups(self) -> tuple[FormGroup, ...]:
        return tuple(
            FormGroup(title, tuple(Row(self[name], name, ()) for name in names if name in self.fields))
            for title, names in _GROUPS
        )

    def _said(self, field: str) -> Any:
        value = super()._said(field)
        return value or None if field in {"url", "webhook"} else value

    def _offer(self, offered: Offered) -> None:
        """Nothing is chosen from lists here."""


def _completed(document: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what is stored in place of each mask, for the rules to judge."""
    masks, stored = REMOTE.shown(base).get("headers", {}), base.get("headers", {})
    kept = {name: stored[name] if masks.get(name) == value else value for name, value in document["headers"].items()}
    return {**document, "headers": kept}


def _most_rows(data: Any, name: str) -> int:
    try:
        return min(int(data.get(f"{name}-rows", 0)), 200)
    except (TypeError, ValueError):
        return 0
