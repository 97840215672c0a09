"""The two kinds of stored definition. Stores, services and edges work on either through this one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from subagents import validation

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from subagents.custom_agents import CustomAgent
    from subagents.definitions import Definition


class Stored(Protocol):
    """What the values of every kind have. `version` is opaque and None until stored."""

    @property
    def name(self) -> str: ...

    @property
    def enabled(self) -> bool: ...

    @property
    def version(self) -> str | None: ...

    @property
    def updated_at(self) -> datetime | None: ...


Item = TypeVar("Item", bound=Stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[Item]):
    """One kind: its folder in the file backend, the fields of its documents, and its rules.

    `validate` turns a document into a value or raises InvalidDefinition with every fault; `to_plain` is its inverse.
    """

    name: str
    noun: str  # for sentences in English
    folder: str
    fields: tuple[str, ...]
    validate: Callable[[Any], Item]
    to_plain: Callable[[Item], dict[str, object]]


SUBAGENT: Final[Kind[Definition]] = Kind(
    name="subagent",
    noun="subagent",
    folder="managed-subagents",
    fields=validation.FIELDS,
    validate=validation.validate_definition,
    to_plain=validation.to_plain,
)
AGENT: Final[Kind[CustomAgent]] = Kind(
    name="agent",
    noun="custom agent",
    folder="custom-agents",
    fields=validation.AGENT_FIELDS,
    validate=validation.validate_agent,
    to_plain=validation.agent_to_plain,
)
KINDS: Final[tuple[Kind[Any], ...]] = (SUBAGENT, AGENT)
