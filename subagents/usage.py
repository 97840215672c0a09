"""When subagents were used. Whoever keeps runs registers as the source: this app knows of no run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

RECENT_DAYS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How much a subagent is used: its newest run, and how many there were in the last RECENT_DAYS days."""

    at: datetime
    recent_runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedBy:
    """One run of a subagent. `status` and `title` are for people, `path` is the address of its page in the admin."""

    path: str
    title: str
    status: object
    at: datetime


class Source(Protocol):
    """What keeps runs answers these; each is one query."""

    def last_used(self, names: Collection[str]) -> Mapping[str, Use]: ...

    def newest_runs(self, name: str, limit: int) -> Sequence[UsedBy]: ...

    def agents_last_used(self, names: Collection[str]) -> Mapping[str, Use]: ...


_sources: list[Source] = []


def register(source: Source) -> None:
    """Make this the source; the one registered last answers."""
    _sources.append(source)


def last_used(names: Collection[str]) -> Mapping[str, Use]:
    """Return the use of those of `names` that were ever used."""
    return _sources[-1].last_used(names) if _sources and names else {}


def newest_runs(name: str, limit: int = 5) -> Sequence[UsedBy]:
    """Return the newest runs of a subagent, newest first."""
    return _sources[-1].newest_runs(name, limit) if _sources else ()


def agents_last_used(names: Collection[str]) -> Mapping[str, Use]:
    """Return the use of those custom agents among `names` that anybody ever sent a message."""
    return _sources[-1].agents_last_used(names) if _sources and names else {}
