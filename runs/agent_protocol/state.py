"""A thread's state as the wire says it, at any number of its log, and as it changes with the rows that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection

from runs import history, rows
from runs.agent_protocol.shapes import values_object
from runs.event_types import EventType
from runs.history import Cut
from runs.rows import as_uuid, key_of
from runs.transcript import from_json, readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from runs.history import Line

LAST_SEQ = 2**63 - 1
EVERYTHING: Line = ((0, LAST_SEQ),)
# The partial index of these events is used only where its condition stands in the statement.
_HISTORY = (
    "SELECT seq, type, run_id, data FROM runs_event"
    " WHERE thread_id = %s AND type IN ('thread.rewound', 'state.updated') AND seq <= %s ORDER BY seq"
)
_MESSAGES = "SELECT seq, data FROM runs_message WHERE thread_id = %s AND seq <= %s ORDER BY seq"


class StateSoFar:
    """What a reader of a thread's log knows of its state: every message, and which of them are part of it."""

    def __init__(
        self,
        messages: Sequence[tuple[int, str]] = (),
        line: Line = EVERYTHING,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._messages, self._line, self._values = list(messages), line, dict(values or {})

    def add(self, seq: int, message: str) -> None:
        self._messages.append((seq, message))

    def update(self, values: Mapping[str, Any]) -> None:
        self._values |= values

    def rewind(self, at: int, fact: Mapping[str, Any]) -> None:
        """A `thread.rewound` event: its line, and whatever comes after it."""
        self._line = (*((first, last) for first, last in fact.get("line") or ()), (at + 1, LAST_SEQ))
        self._values = dict(fact.get("values") or {})

    def json(self) -> bytes:
        texts = [text for seq, text in self._messages if history.on_line(seq, self._line)]
        return values_object(texts, self._values)


def state_upto(thread_id: UUID, seq: int | None = None) -> StateSoFar:
    """The state after event number `seq`, or now. Further rows may be added to it."""
    upto = LAST_SEQ if seq is None else seq
    with rows.in_one_go():
        past, messages = connection.cursor(), connection.cursor()
        past.execute(_HISTORY, [key_of(thread_id), upto])
        messages.execute(_MESSAGES, [key_of(thread_id), upto])
    with past, messages:
        cuts, updates = _sorted(past.fetchall())
        said = [(number, readable(data)) for number, data in messages.fetchall()]
    if not cuts and not updates:
        return StateSoFar(said)
    line = history.line_to(LAST_SEQ, cuts)
    return StateSoFar(said, line, history.values_on(line, updates))


def _sorted(found: Sequence[tuple[int, str, Any, str]]) -> tuple[list[Cut], list[tuple[int, dict[str, Any]]]]:
    cuts, updates = [], []
    for seq, kind, run_id, data in found:
        fact = from_json(data)
        if kind == EventType.THREAD_REWOUND:
            cuts.append(Cut(seq, fact["to"], fact.get("forget", False), as_uuid(run_id)))
        else:
            updates.append((seq, fact.get("values", {})))
    return cuts, updates
