"""Where managed definitions are kept: what every backend gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

    from subagents.catalogue import Invalid
    from subagents.definitions import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything a store holds: what can be read, and what was found but breaks the rules."""

    definitions: tuple[Definition, ...] = ()
    invalid: tuple[Invalid, ...] = ()


class Store(Protocol):
    """Managed definitions by name, with optimistic versions. Definitions handed in are valid."""

    def signature(self) -> str:
        """Return a text that changes whenever any definition does; cheap enough to ask every second."""
        ...

    def all(self) -> Contents: ...

    def get(self, name: str) -> Definition:
        """Raises SubagentNotFound, or InvalidDefinition when it cannot be read."""
        ...

    def put(self, definition: Definition, *, expected_version: int | None, user: AbstractBaseUser | None) -> Definition:
        """Store and return the definition with its new version.

        `expected_version` None creates. Raises NameTaken when a created name exists, StaleVersion when the stored
        version is another one or gone.
        """
        ...

    def delete(self, name: str, *, expected_version: int) -> None:
        """Raises SubagentNotFound and StaleVersion."""
        ...
