"""Where definitions are kept: what every backend gives, for either kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol

from subagents.kinds import Item

if TYPE_CHECKING:
    from subagents.catalogue import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents(Generic[Item]):
    """Everything a store holds, by name: what can be read, and what was found but breaks the rules."""

    items: tuple[Item, ...] = ()
    invalid: tuple[Invalid, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[Item]):
    """One stored definition as it is, readable or not.

    `document` is what is stored, field by field; of something that is no document `{"unreadable": its text}`.
    `item` None: it breaks the rules, as `invalid` says.
    """

    version: str | None
    document: dict[str, object]
    item: Item | None = None
    invalid: Invalid | None = None


class Store(Protocol[Item]):
    """Definitions of one kind by name, with optimistic versions. Values handed in are valid.

    A version is a text that means nothing outside its backend. Raises StorageFailed when the disk does not do
    what is asked of it; what was stored before is then still there.
    """

    def signature(self, *, fresh: bool = False) -> str:
        """Return a text that changes whenever anything here does; cheap enough to ask every second.

        `fresh` reads everything, also what a backend would otherwise take for unchanged.
        """
        ...

    def all(self) -> Contents[Item]: ...

    def find(self, name: str) -> Found[Item] | None:
        """Return what is stored under a name, also when it breaks the rules; None when nothing is."""
        ...

    def get(self, name: str) -> Item:
        """Raises NotFound, or InvalidDefinition when it cannot be read."""
        ...

    def put(self, item: Item, *, expected_version: str | None) -> Item:
        """Store the value and return it with its new version.

        `expected_version` None creates; the version of a broken row repairs it. Raises NameTaken when a created name
        exists, StaleVersion when the stored version is another one or gone.
        """
        ...

    def delete(self, name: str, *, expected_version: str) -> None:
        """Delete it, readable or not. Raises NotFound and StaleVersion."""
        ...
