"""Followers of a relay, and relays whose rings and reads are in the hands of a test."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from runs.doorbell import EVERYTHING, Ring
from runs.lifecycle import Held, Progress
from runs.models import Event, Message, Run, Thread
from runs.relay import Relay
from tests.patience import PATIENCE_SECONDS
from tests.runs.acts import delta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from runs.doorbell import Listener
    from runs.group_commit import GroupCommit
    from runs.log import LogRow

BEGUN = 3  # run.queued, the question, run.started
HOURS = 9_999.0  # the regular look never comes


class HandBell:
    """A doorbell that rings only when the test says so."""

    def __init__(self, listener: Listener) -> None:
        self.ring = listener

    def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None


class Watched(Relay):
    """Counts its reads, and lets the test do something right after one of them."""

    def __init__(self, *, look_seconds: float = HOURS) -> None:
        self.bells: list[HandBell] = []
        super().__init__(doorbell=self._bell_for, look_seconds=look_seconds)
        self.reads = 0
        self._read_more = asyncio.Condition()
        self.after_read: Any = None

    def _bell_for(self, listener: Listener) -> HandBell:
        self.bells.append(HandBell(listener))
        return self.bells[-1]

    def ring(self, ring: Ring = EVERYTHING) -> None:
        self.bells[0].ring(ring)

    async def until_read(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), self._read_more:
            await self._read_more.wait_for(lambda: self.reads >= count)

    async def _call(self, function: Any, *arguments: Any) -> Any:
        result = await super()._call(function, *arguments)
        async with self._read_more:
            self.reads += 1
            self._read_more.notify_all()
        if self.after_read is not None:
            act, self.after_read = self.after_read, None
            await act()
        return result


@asynccontextmanager
async def running(relay: Relay) -> AsyncIterator[Any]:
    await relay.start()
    try:
        yield relay
    finally:
        await relay.stop()


async def rows_upto(relay: Relay, thread_id: UUID, after: int, upto: int) -> list[LogRow]:
    got: list[LogRow] = []
    async with asyncio.timeout(PATIENCE_SECONDS), aclosing(relay.follow(thread_id, after)) as batches:
        async for rows in batches:
            got += rows
            if got[-1].seq >= upto:
                break
    return got


class Follower:
    """Follows in the background; `until` waits for what it has."""

    def __init__(self, relay: Relay, thread_id: UUID, after: int = 0) -> None:
        self.seqs: list[int] = []
        self._more = asyncio.Condition()
        self.task = asyncio.create_task(self._follow(relay, thread_id, after))

    async def _follow(self, relay: Relay, thread_id: UUID, after: int) -> None:
        async with aclosing(relay.follow(thread_id, after)) as batches:
            async for rows in batches:
                async with self._more:
                    self.seqs += [row.seq for row in rows]
                    self._more.notify_all()

    async def until(self, seq: int) -> list[int]:
        async with asyncio.timeout(PATIENCE_SECONDS), self._more:
            await self._more.wait_for(lambda: self.seqs and self.seqs[-1] >= seq)
        return self.seqs

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def seqs(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


async def write(database: GroupCommit, held: Held, count: int = 1) -> None:
    for _ in range(count):
        await database.write(Progress(held=held, entries=[delta()]))


def store(run: Run, kinds: list[str]) -> int:
    """Rows in bulk, as a long conversation left them. Returns the newest number."""
    thread = Thread.objects.get(pk=run.thread_id)
    first = thread.last_seq + 1
    places = {"thread_id": thread.pk, "run_id": run.pk}
    rows = [
        Event(
            seq=seq, type=kind, at=timezone.now(), data="" if kind == "message" else '{"id":"m","text":"x"}', **places
        )
        for seq, kind in enumerate(kinds, start=first)
    ]
    Event.objects.bulk_create(rows)
    Message.objects.bulk_create(Message(seq=row.seq, data="{}", **places) for row in rows if row.type == "message")
    Thread.objects.filter(pk=thread.pk).update(last_seq=rows[-1].seq)
    return rows[-1].seq
