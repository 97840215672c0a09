from __future__ import annotations

import asyncio
import contextlib
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from runs.doorbell import EVERYTHING, Doorbell, Ring, parse, payloads, ring_at_commit
from tests.patience import PATIENCE_SECONDS

ids = st.frozensets(st.uuids(), max_size=400)


@given(threads=ids, cancels=ids, queue=st.booleans())
def test_a_ring_survives_the_way_through_notifications(threads, cancels, queue):
    ring = Ring(threads=threads, queue=queue, cancels=cancels)
    texts = payloads(ring)
    heard = [parse(text) for text in texts]
    assert frozenset().union(*(part.threads or () for part in heard)) == threads
    assert frozenset().union(*(part.cancels for part in heard)) == cancels
    assert any(part.queue for part in heard) == queue
    assert all(len(text) < 8000 for text in texts)  # what PostgreSQL takes


@pytest.mark.parametrize("text", ["", "x", "t not-an-id", "z 1", "qq"])
def test_a_text_of_another_version_means_anything_may_have_changed(text):
    assert parse(text) == EVERYTHING


class _Ears:
    def __init__(self) -> None:
        self.heard: list[Ring] = []
        self._more = asyncio.Event()

    def listen(self, ring: Ring) -> None:
        self.heard.append(ring)
        self._more.set()

    async def until(self, thread_id: UUID) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not any(ring.threads is None or thread_id in ring.threads for ring in self.heard):
                await self._more.wait()
                self._more.clear()


async def test_a_commit_rings_and_a_rollback_does_not(database):
    ears = _Ears()
    kept, undone = uuid4(), uuid4()
    bell = Doorbell(ears.listen)
    bell.start()
    try:

        def ring_and_undo() -> None:
            with transaction.atomic():
                ring_at_commit(Ring(threads=frozenset({undone})))
                transaction.set_rollback(True)

        def ring() -> None:
            with transaction.atomic():
                ring_at_commit(Ring(threads=frozenset({kept})))

        await database.call(ring_and_undo)
        await database.call(ring)
        await ears.until(kept)
    finally:
        await bell.stop()
    assert not any(undone in (ring.threads or ()) for ring in ears.heard)


async def test_a_listener_whose_loop_has_ended_does_not_fail_the_commit_that_rings(database):
    ears = _Ears()

    def start_and_forget() -> None:
        async def begin() -> None:
            bell = Doorbell(ears.listen)
            bell.start()
            bells.append(bell)

        asyncio.run(begin())

    bells: list[Doorbell] = []
    await asyncio.to_thread(start_and_forget)

    def ring() -> None:
        with transaction.atomic():
            ring_at_commit(Ring(threads=frozenset({uuid4()})))

    try:
        await database.call(ring)
    finally:
        with contextlib.suppress(RuntimeError):  # its loop has ended; it is no listener any more all the same
            await bells[0].stop()
