"""A thread's history as a tree: every stored step is a checkpoint, and a rewind makes the next one grow elsewhere.

The transcript's rows are never changed or removed. What makes a tree of them is the log's `thread.rewound` events: the
rows after such an event go on from the checkpoint it names. A checkpoint is known by its row's number in the log, and
to programs by a UUID made from it. Values and rules only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Line = tuple[tuple[int, int], ...]  # the numbers of what is in a state: closed ranges, ascending
_NUMBER_BITS, _OWN_BITS = 48, 74
_VERSION, _VARIANT = 8 << 76, 2 << 62  # a UUID of the kind whose bits everybody may choose


@dataclass(frozen=True, slots=True)
class Cut:
    """A rewind: what comes after number `at` goes on from `to`; 0 is the empty state."""

    at: int
    to: int
    forget: bool = False  # a rollback: what was left is no part of the history either
    run_id: UUID | None = None  # the run for whose sake


def line_to(seq: int, cuts: Sequence[Cut]) -> Line:
    """The numbers that make up the state at `seq`. `cuts` are those of the thread, oldest first."""
    ranges: list[tuple[int, int]] = []
    for cut in reversed(cuts):
        if cut.at <= seq:
            ranges.append((cut.at + 1, seq))
            seq = cut.to
    ranges.append((1, seq))
    return tuple((first, last) for first, last in reversed(ranges) if first <= last)


def common_end(one: Line, other: Line) -> int:
    """The number up to which two lines of one thread are the same; they have nothing in common behind it."""
    end = 0
    for (first, last), (other_first, other_last) in zip(one, other, strict=False):
        if first != other_first:
            break
        end = min(last, other_last)
        if last != other_last:
            break
    return end


def past(seq: int, line: Line) -> Line:
    """What is on a line behind a number."""
    return tuple((max(first, seq + 1), last) for first, last in line if last > seq)


def on_line(seq: int, line: Line) -> bool:
    return any(first <= seq <= last for first, last in line)


def forgotten(seqs: Iterable[int], cuts: Sequence[Cut]) -> set[int]:
    """Those of the checkpoints that a rollback took away: they are no part of the history."""
    undone = [(line_to(cut.at - 1, cuts), line_to(cut.to, cuts)) for cut in cuts if cut.forget]
    return {seq for seq in seqs if any(on_line(seq, old) and not on_line(seq, kept) for old, kept in undone)}


def parent_of(seq: int, checkpoints: Iterable[int], cuts: Sequence[Cut]) -> int:
    """The checkpoint that the one with this number goes on from; 0: from the empty state."""
    line = line_to(seq, cuts)
    return max((other for other in checkpoints if other < seq and on_line(other, line)), default=0)


def values_on(line: Line, updates: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """What a thread's state holds besides its messages: the updates on the line, the later before the earlier."""
    values: dict[str, Any] = {}
    for seq, changed in updates:
        if on_line(seq, line):
            values |= changed
    return values


def checkpoint_id(thread_id: UUID, seq: int) -> UUID:
    """The id of a checkpoint: unlike any of another thread, and as text in the order of the numbers."""
    number = seq << 80
    own = _own_bits(thread_id)
    return UUID(int=number | _VERSION | (own >> 62) << 64 | _VARIANT | own & ((1 << 62) - 1))


def seq_of(thread_id: UUID, checkpoint: UUID) -> int | None:
    """The number a checkpoint's id stands for; None for an id that is no checkpoint of this thread."""
    seq = checkpoint.int >> 80
    return seq if checkpoint_id(thread_id, seq) == checkpoint else None


def _own_bits(thread_id: UUID) -> int:
    digest = hashlib.sha256(thread_id.bytes).digest()
    return int.from_bytes(digest[:10]) & ((1 << _OWN_BITS) - 1)
