"""Sentences about definitions, kept as a code and its facts so that each edge can say them in its own language."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.reasons import Reason, gettext_noop
from engine.text import clean, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_FACT: Final = 400


SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Why an entry is in its state.
        "shadowed": gettext_noop(
            "The name is held by a stronger source (%(source)s). This entry is kept, but it does not run."
        ),
        "disabled": gettext_noop("Switched off. Its name stays taken, so no weaker source can use it."),
        "invalid": gettext_noop(
            "Cannot be read and does not run. Its name stays taken,"
            " so that a broken entry never lets a weaker one take over."
        ),
        "disabled_agent": gettext_noop("Switched off. Nobody can talk to it."),
        "invalid_agent": gettext_noop("Cannot be read. Nobody can talk to it."),
        "no_bash": gettext_noop("Bash cannot run safely here: %(reason)s"),
        "invalid_remote": gettext_noop("Cannot be read. Nobody can call it."),
        "unset_variable": gettext_noop("These variables of its headers are not set: %(names)s"),
        # Warnings on an entry that runs all the same.
        "address_refused": gettext_noop("Its address will be refused: %(reason)s"),
        "headers_unencrypted": gettext_noop("Its headers go over an unencrypted connection. Use https where you can."),
        "fork_is_isolated": gettext_noop(
            "Mode “fork” is read and works like “isolated”: the task text is all it gets."
        ),
        "unknown_tool": gettext_noop("There is no tool named “%(name)s”. It is ignored."),
        "denied_tool": gettext_noop("A subagent never gets the tool “%(name)s”. It is ignored."),
        "unknown_skill": gettext_noop("There is no skill named “%(name)s”. It is ignored."),
        "unknown_model": gettext_noop("There is no configured model named “%(name)s”. Runs will fail until there is."),
        "missing_subagent": gettext_noop(
            "There is no subagent named “%(name)s”. It is kept and used once there is one."
        ),
        "idle_subagent": gettext_noop("The subagent “%(name)s” does not run at the moment, so it cannot be called."),
        "empty_scope": gettext_noop("None of the selected subagents runs at the moment: the agent cannot delegate."),
        # Advice about a description.
        "description_short": gettext_noop(
            "“When to use it” is very short. Say what it does and when the lead should pick it."
        ),
        "description_no_verb": gettext_noop(
            "“When to use it” begins with “%(word)s”. Begin with what it does, such as “Compares …” or “Writes …”."
        ),
        "description_alike": gettext_noop(
            "“When to use it” is nearly that of %(name)s. The lead cannot tell them apart: say what is different."
        ),
        # About an override.
        "unused_override": gettext_noop("subagents.agents.%(name)s changes nothing: no subagent bears this name."),
        "broken_override": gettext_noop("The override %(path)s is not applied: %(problems)s"),
    }
)


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence: `code` is a key of SENTENCES, `facts` fill its placeholders. `str()` says it in English."""

    code: str
    facts: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return SENTENCES[self.code] % self.facts

    def __hash__(self) -> int:
        return hash((self.code, tuple(sorted(self.facts.items()))))


def note(code: str, **facts: object) -> Note:
    """Make a note; facts become storable text of a bearable length. Raises KeyError for an unknown code."""
    if code not in SENTENCES:
        raise KeyError(code)
    return Note(code, {key: _bearable(value) for key, value in facts.items()})


def _bearable(fact: object) -> str:
    if isinstance(fact, Reason) and len(fact) <= _LONGEST_FACT and clean(fact) == fact:
        return fact
    return shorten(clean(str(fact)), _LONGEST_FACT)
