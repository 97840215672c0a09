"""Messages that a program puts into a thread's state, merged by id as LangGraph's `add_messages` does.

A message with a known id takes the place of the other, one of type "remove" takes it away, and any other comes last.
Values and rules only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

WireMessage = dict[str, Any]
REMOVE: Final = "remove"
REMOVE_ALL: Final = "__remove_all__"


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a thread's state: its number (0: it has none yet), its run and what it says."""

    seq: int
    run_id: UUID
    message: WireMessage


@dataclass(frozen=True, slots=True)
class Merged:
    """The state up to number `keep` stays; `rest` comes after it."""

    keep: int
    rest: tuple[Said, ...]


class NoSuchMessage(ValueError):
    """A message to be removed is not there."""


def merge(now: Sequence[Said], incoming: Sequence[WireMessage], run_id: UUID) -> Merged:
    """The state with `incoming`, as what of it stays and what has to be written behind. Raises NoSuchMessage."""
    after = list(now)
    for message in incoming:
        _put(after, message, run_id)
    same = 0
    while same < min(len(now), len(after)) and now[same] is after[same]:
        same += 1
    changed = same < len(now)
    # A summary stands for messages by their number: behind a change it would stand for others.
    rest = [one for one in after[same:] if not (changed and one.seq and _is_summary(one.message))]
    return Merged(now[same - 1].seq if same else 0, tuple(rest))


def _put(after: list[Said], message: WireMessage, run_id: UUID) -> None:
    wanted = message.get("id")
    if message.get("type") == REMOVE and wanted == REMOVE_ALL:
        after.clear()
        return
    place = next((place for place, one in enumerate(after) if one.message.get("id") == wanted), None)
    if message.get("type") == REMOVE:
        if place is None:
            raise NoSuchMessage(str(wanted))
        del after[place]
    elif place is None:
        after.append(Said(0, run_id, message))
    else:
        after[place] = Said(0, after[place].run_id, message)


def _is_summary(message: WireMessage) -> bool:
    return message.get("type") == "system" and "summary" in message
