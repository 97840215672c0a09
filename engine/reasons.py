"""Sentences for people that arise in the engine, in English; an edge says them again in its reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


def gettext_noop(sentence: str) -> str:
    """Mark a sentence for the translators' extraction. Django's own is not importable here."""
    return sentence


class Reason(str):
    """One sentence as what it was made of; the text itself is the English one.

    `template`, the key to its translations, names its places `%(name)s`, and `facts` fill them; a fact may be a
    reason again. Without facts the template is taken as it stands.
    """

    __slots__ = ("facts", "template")

    template: str
    facts: Mapping[str, str]

    def __new__(cls, template: str, **facts: object) -> Self:
        said = {name: fact if isinstance(fact, Reason) else str(fact) for name, fact in facts.items()}
        reason = super().__new__(cls, template % said if said else template)
        reason.template, reason.facts = template, said
        return reason

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.template, dict(self.facts))


def to_plain(reason: Reason) -> dict[str, Any]:
    """A reason as JSON values."""
    facts = {name: to_plain(fact) if isinstance(fact, Reason) else fact for name, fact in reason.facts.items()}
    return {"template": reason.template, "facts": facts}


def from_plain(value: object) -> Reason | None:
    """The reason that `to_plain` wrote; None for anything else."""
    match value:
        case {"template": str(template), "facts": dict(facts)}:
            try:
                return Reason(template, **{name: from_plain(fact) or fact for name, fact in facts.items()})
            except (KeyError, TypeError, ValueError):
                return None
    return None


def _again(template: str, facts: dict[str, str]) -> Reason:
    return Reason(template, **facts)


def reason_of(error: BaseException) -> str:
    """What an exception was raised with, as the reason it is, where it is one."""
    said = error.args[0] if error.args else None
    return said if isinstance(said, Reason) else str(error)


def located(place: str, reason: str) -> Reason:
    """A reason behind the place it is about; just the reason where there is none."""
    return Reason("%(place)s: %(reason)s", place=place, reason=reason) if place else Reason("%(reason)s", reason=reason)


def joined(reasons: tuple[str, ...]) -> Reason:
    """Several reasons in one."""
    names = [f"reason_{number}" for number in range(len(reasons))]
    return Reason("; ".join(f"%({name})s" for name in names), **dict(zip(names, reasons, strict=True)))
