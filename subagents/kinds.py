"""The kinds of stored definition. Stores, services and edges work on each through this one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from subagents import remote_agents, validation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from subagents.custom_agents import CustomAgent
    from subagents.definitions import Definition
    from subagents.remote_agents import RemoteAgent


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
    # A document as it may be shown; and one that was shown, with what was not shown put in again from what is stored.
    shown: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    completed: Callable[[Mapping[str, Any], Item | None], Mapping[str, Any]] = lambda document, before: document


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
REMOTE: Final[Kind[RemoteAgent]] = Kind(
    name="remote",
    noun="remote agent",
    folder="remote-agents",
    fields=remote_agents.FIELDS,
    validate=remote_agents.validate_remote,
    to_plain=remote_agents.to_plain,
    shown=remote_agents.shown,
    completed=remote_agents.with_kept_headers,
)
KINDS: Final[tuple[Kind[Any], ...]] = (SUBAGENT, AGENT, REMOTE)
