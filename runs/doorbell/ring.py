"""What a ring says: which threads have new events, whether the queue has new rows, which runs shall stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

CHANNEL = "runs"
_IDS_PER_PAYLOAD = 150  # 36 characters and a space each; PostgreSQL takes 8,000 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """Which threads have new events, whether the queue has new rows, which runs somebody wants stopped."""

    threads: frozenset[UUID] | None = frozenset()
    queue: bool = False
    cancels: frozenset[UUID] = frozenset()

    def __bool__(self) -> bool:
        return self.threads is None or bool(self.threads or self.queue or self.cancels)


EVERYTHING = Ring(threads=None, queue=True)
Listener = Callable[[Ring], None]


def payloads(ring: Ring) -> list[str]:
    """The ring as texts that fit into notifications: `q`, `t <ids>`, `c <ids>`."""
    texts = ["q"] if ring.queue else []
    for letter, ids in (("t", sorted(ring.threads or ())), ("c", sorted(ring.cancels))):
        parts = (ids[start : start + _IDS_PER_PAYLOAD] for start in range(0, len(ids), _IDS_PER_PAYLOAD))
        texts.extend(f"{letter} {' '.join(map(str, part))}" for part in parts)
    return texts


@lru_cache(maxsize=4096)
def _id(text: str) -> UUID:
    """A thread rings a few times within a second, and every process hears it."""
    return UUID(text)


def parse(payload: str) -> Ring:
    """The inverse of `payloads`; a text of another version means "anything may have changed"."""
    letter, _, rest = payload.partition(" ")
    try:
        ids = frozenset(map(_id, rest.split()))
    except ValueError:
        return EVERYTHING
    if letter == "t":
        return Ring(threads=ids)
    if letter == "c":
        return Ring(cancels=ids)
    return Ring(queue=True) if letter == "q" else EVERYTHING
