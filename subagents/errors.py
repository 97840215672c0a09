"""What this app raises on purpose."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from engine.reasons import Reason, joined, located
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.config.errors import Problem
    from subagents.definitions import Source


class SubagentsError(Exception):
    """Base of everything this app raises on purpose."""


class Fault(NamedTuple):
    """One thing wrong with a definition: the field's path, such as `token_budget.max_tokens`, and a sentence."""

    path: str
    sentence: str


class InvalidDefinition(SubagentsError):
    """A definition breaks the rules of its fields. All faults are named at once."""

    def __init__(self, faults: Iterable[Fault | tuple[str, str]]) -> None:
        self.faults = tuple(Fault(*fault) for fault in faults)
        super().__init__(joined(self.reasons))

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Each fault's sentence behind its path."""
        return tuple(located(fault.path, fault.sentence) for fault in self.faults)


class NameTaken(SubagentsError):
    """A new definition asks for a name that another entry holds (409)."""

    def __init__(self, name: str, source: Source, *, noun: str = "subagent") -> None:
        super().__init__(f"the name {name} is held by a {source.value} {noun}")
        self.name = name
        self.source = source


class ReadOnly(SubagentsError):
    """Built-in and config.yaml entries are changed in the file or not at all (409)."""

    def __init__(self, name: str, source: Source) -> None:
        super().__init__(f"{name} is a {source.value} subagent and cannot be changed here")
        self.name = name
        self.source = source


class StaleVersion(SubagentsError):
    """Somebody else saved the definition in between (409, 412).

    `current` None: it is gone. `changes` maps each field that differs to (value at the expected version, value now);
    empty when the expected version is not in the history.
    """

    def __init__(
        self,
        name: str,
        *,
        expected: str,
        current: str | None,
        changes: Mapping[str, tuple[object, object]] = MappingProxyType({}),
    ) -> None:
        now = "it no longer exists" if current is None else f"it is at version {current}"
        super().__init__(f"{name} was expected at version {expected}, but {now}")
        self.name = name
        self.expected = expected
        self.current = current
        self.changes = changes


class NotFound(SubagentsError):
    """No stored definition bears this name (404)."""

    def __init__(self, name: str, *, noun: str = "subagent") -> None:
        super().__init__(f"there is no managed {noun} named {name}")
        self.name = name


class StorageFailed(SubagentsError):
    """The disk refused what was asked of it (503). What was stored before is still there."""


class UnknownAgent(SubagentsError):
    """No lead agent bears this name (404)."""

    def __init__(self, agent: str) -> None:
        super().__init__(Reason(_("there is no agent with this name")))
        self.agent = agent


class ConfigRefused(SubagentsError):
    """config.yaml is refused and no earlier good one is known. `str()` is the whole report, a line per problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
