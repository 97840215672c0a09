"""On whose behalf a graph works: what it asks of this platform in process, it asks as the owner of its run.

A context variable and nothing that travels with a request: no client can set it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Acting:
    owner_id: int
    run_id: str


_acting: ContextVar[Acting | None] = ContextVar("acting", default=None)


def acting() -> Acting | None:
    """The run on whose behalf the current task works; None for everything else."""
    return _acting.get()


@contextmanager
def acting_as(owner_id: int, run_id: str) -> Iterator[None]:
    token = _acting.set(Acting(owner_id, run_id))
    try:
        yield
    finally:
        _acting.reset(token)
