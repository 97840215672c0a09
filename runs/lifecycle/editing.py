"""What a program changes of a thread that stands still: its state, its metadata, how long it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from engine.text import clean_json
from runs import history
from runs.errors import BadInput, ThreadNotFound
from runs.event_types import StateUpdated
from runs.lifecycle.rewinding import NO_RUN, idle_thread, take_back
from runs.merging import NoSuchMessage, Said, merge
from runs.models import Message
from runs.statuses import ThreadStatus
from runs.transcript import from_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from runs.ledger import Ledger
    from runs.models import Thread
    from runs.transcript import WireMessage

MAX_VALUES_BYTES = 256 << 10  # of a thread's values that are no messages
MAX_METADATA_BYTES = 64 << 10  # a thread's row is read at each of its runs, its metadata with it


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateState:
    """Merge messages and set values in the state of a thread, now or as it was at checkpoint number `at`.

    Always makes a new checkpoint, the one that the thread goes on from. Result: its number. Raises as `Rewind`, and
    BadInput for what does not fit or names a message that is not there.
    """

    thread_id: UUID
    owner_id: int
    messages: Sequence[WireMessage] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    at: int | None = None

    @property
    def line_of(self) -> UUID:
        return self.thread_id

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return ()

    def apply(self, ledger: Ledger) -> int:
        thread = idle_thread(ledger, self.thread_id, self.owner_id)
        # All of it is checked before anything is written: a verb that refuses leaves its neighbours' work alone.
        line = history.line_to(thread.last_seq if self.at is None else self.at, ledger.cuts_of(thread))
        values = history.values_on(line, ledger.updates_of(thread)) | _storable(self.values)
        if len(orjson.dumps(values)) > MAX_VALUES_BYTES:
            raise BadInput("values", f"they have more than {MAX_VALUES_BYTES:,} bytes as JSON, messages left out")
        now = [one for one in _said(thread.pk) if history.on_line(one.seq, line)]
        try:
            merged = merge(now, self.messages, NO_RUN)
        except NoSuchMessage as missing:
            raise BadInput("values.messages", f"no message has the id {str(missing)[:80]}") from None
        if self.at is not None:
            take_back(ledger, thread, self.at)
        if merged.keep != (now[-1].seq if now else 0):
            take_back(ledger, thread, merged.keep)
        for one in merged.rest:
            ledger.append(thread, one.run_id, [one.message])
        # A rewind has lost the values that were set behind the place it went to.
        if values != thread.values or not merged.rest:
            ledger.append(thread, NO_RUN, [StateUpdated(values=values)])
            ledger.set_values(thread, values)
        thread.status = ThreadStatus.IDLE.value
        ledger.touch(thread)
        return thread.last_seq


def _storable(values: Mapping[str, Any]) -> dict[str, Any]:
    storable: dict[str, Any] = clean_json(dict(values))  # type: ignore[assignment]
    return storable


def _said(thread_id: UUID) -> list[Said]:
    stored = Message.objects.filter(thread_id=thread_id).order_by("seq").values_list("seq", "run_id", "data")
    return [Said(seq, run_id, from_json(data)) for seq, run_id, data in stored]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateThread:
    """Merge metadata into a thread's, and say how long it is kept. Result: the Thread. Raises ThreadNotFound."""

    thread_id: UUID
    owner_id: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ttl: tuple[float, str] | None = None  # minutes without a change, and what happens then

    def thread_ids(self) -> tuple[UUID, ...]:
        return (self.thread_id,)

    def run_ids(self) -> tuple[UUID, ...]:
        return ()

    def apply(self, ledger: Ledger) -> Thread:
        thread = ledger.threads.get(self.thread_id)
        if thread is None or thread.owner_id != self.owner_id:
            raise ThreadNotFound(self.thread_id)
        metadata = thread.metadata | _storable(self.metadata)
        if len(orjson.dumps(metadata)) > MAX_METADATA_BYTES:
            raise BadInput("metadata", f"with what is there it has more than {MAX_METADATA_BYTES:,} bytes as JSON")
        thread.metadata = metadata
        if self.ttl is not None:
            ledger.keep(thread, *self.ttl)
        ledger.touch(thread)
        return thread
