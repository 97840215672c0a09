"""What this app raises on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        super().__init__("; ".join(f"{path}: {sentence}" for path, sentence in self.faults))


class NameTaken(SubagentsError):
    """A new definition asks for a name that another entry holds (409)."""

    def __init__(self, name: str, source: Source) -> None:
        super().__init__(f"the name {name} is held by a {source.value} subagent")
        self.name = name
        self.source = source


class StaleVersion(SubagentsError):
    """Somebody else saved the definition in between (409, 412). `current` None: it is gone."""

    def __init__(self, name: str, *, expected: int | None, current: int | None) -> None:
        now = "it no longer exists" if current is None else f"it is at version {current}"
        super().__init__(f"{name} was expected at version {expected}, but {now}")
        self.name = name
        self.expected = expected
        self.current = current


class SubagentNotFound(SubagentsError):
    """No managed definition bears this name (404)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no managed subagent named {name}")
        self.name = name


class UnknownAgent(SubagentsError):
    """No lead agent bears this name (404)."""

    def __init__(self, agent: str) -> None:
        super().__init__("there is no agent with this name")
        self.agent = agent


class ConfigRefused(SubagentsError):
    """config.yaml is refused and no earlier good one is known. `str()` is the whole report, a line per problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
