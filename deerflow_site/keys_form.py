"""What a person chooses about a new API key, and what is said of one, in the admin and on everybody's own page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from access import keys
from access.keys import Scope
from access.models import ApiKey

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SCOPES: Final = {
    Scope.READ: _("read: look at whatever its owner may see"),
    Scope.RUN: _("run: also start, steer and cancel work"),
    Scope.ADMIN: _("admin: also change subagents and agents, as far as its owner may"),
}
STATES: Final = {
    "valid": ("success", pgettext_lazy("state of an API key", "Valid")),
    "expired": ("warning", pgettext_lazy("state of an API key", "Expired")),
    "revoked": ("danger", pgettext_lazy("state of an API key", "Revoked")),
}
_DAYS: Final = ((30, _("30 days")), (90, _("90 days")), (365, _("1 year")), ("", _("until it is revoked")))
# Whoever has none of these can do nothing with the scope `admin`.
_CHANGES: Final = tuple(
    f"subagents.{verb}_{model}" for verb in ("add", "change", "delete") for model in ("managedsubagent", "customagent")
)


def scopes_for(owner: Any) -> list[tuple[Scope, Any]]:
    """The scopes that a key of this person can make use of, with their words."""
    may_change = any(owner.has_perm(name) for name in _CHANGES)
    return [(scope, words) for scope, words in SCOPES.items() if scope is not Scope.ADMIN or may_change]


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """The key itself is not theirs to choose. `owner` has to be set before the form is filled."""

    owner: User | None = None
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=list(SCOPES.items()),
        initial=[Scope.READ],
        widget=forms.CheckboxSelectMultiple(),
        help_text=_("A key can never do more than its owner may at the moment it is used."),
    )
    days = forms.TypedChoiceField(
        label=_("Valid for"), choices=_DAYS, coerce=int, empty_value=None, required=False, initial=90
    )

    class Meta:
        model = ApiKey
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scopes"].choices = scopes_for(self.owner)  # type: ignore[attr-defined]

    def make(self) -> tuple[ApiKey, str]:
        """The new key's row and the key itself, which cannot be read again."""
        assert self.owner is not None
        chosen = self.cleaned_data
        return keys.make_key(self.owner, chosen["name"], chosen["scopes"], keys.expiry(chosen["days"]))
