from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from runs.worker.slots import Slots
from tests.patience import PATIENCE_SECONDS


async def _turn() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_run_that_goes_on_after_a_wait_comes_before_new_claims():
    slots = Slots(1)
    slots.take()
    slots.give_back()  # the first waits for its children
    slots.take()  # a new one
    again = asyncio.create_task(slots.take_again())
    await _turn()
    slots.give_back()
    assert slots.free == 0
    await again


async def test_those_who_wait_get_slots_in_the_order_of_asking():
    slots, order = Slots(1), []

    async def again(name: str) -> None:
        await slots.take_again()
        order.append(name)

    slots.take()
    waiting = [asyncio.create_task(again(name)) for name in ("first", "second", "third")]
    await _turn()
    for _ in waiting:
        slots.give_back()
        await _turn()
    assert order == ["first", "second", "third"]


async def test_as_many_leads_as_one_slot_may_wait_for_children_without_a_deadlock():
    slots, ended = Slots(1), []

    async def child(number: int) -> None:
        while slots.free <= 0:
            await asyncio.sleep(0)
        slots.take()
        await asyncio.sleep(0)
        slots.give_back()
        ended.append(f"child {number}")

    async def lead(number: int) -> None:
        while slots.free <= 0:
            await asyncio.sleep(0)
        slots.take()
        slots.give_back()  # waits
        await child(number)
        await slots.take_again()
        slots.give_back()
        ended.append(f"lead {number}")

    await asyncio.wait_for(asyncio.gather(*(lead(number) for number in range(20))), PATIENCE_SECONDS)
    assert len(ended) == 40
    assert slots.free == 1


async def test_a_wait_that_is_cancelled_in_the_moment_a_slot_comes_free_is_counted_once():
    slots = Slots(1)
    slots.take()
    again = asyncio.create_task(slots.take_again())
    await _turn()
    again.cancel()
    slots.give_back()  # before the cancelled task has run
    await asyncio.gather(again, return_exceptions=True)
    assert slots.full  # taken for the one that is being stopped
    slots.give_back()
    assert (slots.free, slots.full) == (1, False)


async def test_a_wait_that_is_cancelled_after_it_was_granted_is_counted_once():
    slots = Slots(1)
    slots.take()
    again = asyncio.create_task(slots.take_again())
    await _turn()
    slots.give_back()
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    slots.give_back()
    assert slots.free == 1


class _Runs:
    """A worker's runs, driven by drawn steps; each run is working, waiting for children, or coming back."""

    def __init__(self, count: int) -> None:
        self.slots = Slots(count)
        self.working = 0
        self.waiting = 0
        self.coming: list[asyncio.Task[None]] = []
        self.over = 0  # reclaimed by runs that are being stopped

    async def step(self, name: str) -> None:
        await getattr(self, name)()
        if name != "cancel_and_give_back":
            await _turn()
        self._settle()

    def _settle(self) -> None:
        for task in [task for task in self.coming if task.done()]:
            self.coming.remove(task)
            self.working += 1

    async def claim(self) -> None:
        if self.slots.free > 0:
            self.slots.take()
            self.working += 1

    async def end(self) -> None:
        if self.working:
            self.working -= 1
            self.slots.give_back()

    async def wait(self) -> None:
        if self.working:
            self.working -= 1
            self.waiting += 1
            self.slots.give_back()

    async def come_back(self) -> None:
        if self.waiting:
            self.waiting -= 1
            self.coming.append(asyncio.create_task(self.slots.take_again()))

    async def stop_waiting(self) -> None:
        if self.waiting:
            self.waiting -= 1
            self.slots.reclaim()
            self.working += 1
            self.over += 1

    async def cancel(self) -> None:
        if self.coming:
            self.coming[0].cancel()
            self.over += 1

    async def cancel_and_give_back(self) -> None:
        await self.cancel()
        await self.end()
        await _turn()


_STEPS = ["claim", "end", "wait", "come_back", "stop_waiting", "cancel", "cancel_and_give_back"]


@settings(max_examples=150, deadline=None)
@given(count=st.integers(1, 3), steps=st.lists(st.sampled_from(_STEPS), max_size=40))
def test_slots_in_use_are_exactly_the_runs_that_work(count, steps):
    async def play() -> None:
        runs = _Runs(count)
        for step in steps:
            await runs.step(step)
            in_use = runs.slots._used
            assert in_use == runs.working
            assert 0 <= in_use <= count + runs.over
            assert 0 <= runs.slots.free <= count
        for _ in range(runs.working + len(runs.coming) + 1):
            await runs.step("end")
        assert not runs.coming
        assert runs.slots.free == count

    asyncio.run(play())
