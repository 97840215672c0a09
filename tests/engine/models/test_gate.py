"""The gate before a model: attempts, rest, places. No clock but the test's own, and waits of a millisecond."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from engine.errors import ModelResting, StreamCut
from engine.models.gate import FAILURES_TO_REST, REST_SECONDS, ModelGate, Places
from engine.ports import Pause


class ServerError(Exception):
    def __init__(self, status, headers=None):
        super().__init__(str(status))
        self.status_code = status
        self.headers = headers or {}


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Asked:
    """Raises the given faults in order, then answers."""

    def __init__(self, *faults):
        self.faults = list(faults)
        self.count = 0

    async def __call__(self):
        self.count += 1
        if self.faults:
            raise self.faults.pop(0)
        return "answer"


class Pauses:
    def __init__(self):
        self.seen = []
        self.open = 0

    @asynccontextmanager
    async def __call__(self, pause):
        self.seen.append(pause)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


def gate(**options):
    return ModelGate("gpt", first_backoff_seconds=0.001, **options)


async def call(one, asked, pauses=None):
    return await one.call(asked, pause=pauses or Pauses())


# Attempts


@pytest.mark.parametrize("fault", [ServerError(429), ServerError(529), ServerError(408), StreamCut("cut"), OSError()])
async def test_what_may_pass_is_tried_again_and_the_wait_is_shown(fault):
    asked, pauses = Asked(fault) if not isinstance(fault, OSError) else Asked(ConnectionResetError()), Pauses()
    assert await call(gate(), asked, pauses) == "answer"
    assert asked.count == 2
    assert (pauses.seen, pauses.open) == ([Pause.RETRY], 0)


@pytest.mark.parametrize("fault", [ServerError(400), ServerError(401), ServerError(404), ValueError("ours")])
async def test_what_will_not_pass_is_raised_at_once(fault):
    asked = Asked(fault)
    with pytest.raises(type(fault)):
        await call(gate(), asked)
    assert asked.count == 1


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (2, 3), (3, 4)])
async def test_there_are_no_more_attempts_than_configured_and_the_last_fault_is_raised(retries, attempts):
    asked = Asked(*[ServerError(503) for _ in range(9)])
    with pytest.raises(ServerError):
        await call(gate(max_retries=retries), asked)
    assert asked.count == attempts


async def test_a_server_that_asks_for_more_than_a_minute_is_not_waited_for():
    asked = Asked(ServerError(429, {"retry-after": "3600"}))
    with pytest.raises(ServerError):
        await call(gate(), asked)
    assert asked.count == 1


async def test_what_a_server_asks_for_is_waited_out():
    loop, asked = asyncio.get_running_loop(), Asked(ServerError(429, {"retry-after-ms": "60"}))
    began = loop.time()
    await call(gate(), asked)
    assert loop.time() - began >= 0.055


async def test_a_cancelled_call_is_not_made_again_and_gives_its_place_back():
    one = gate(max_concurrency=1)
    entered = asyncio.Event()

    async def endless():
        entered.set()
        await asyncio.Event().wait()

    under_way = asyncio.create_task(call(one, endless))
    await entered.wait()
    under_way.cancel()
    with pytest.raises(asyncio.CancelledError):
        await under_way
    assert await call(one, Asked()) == "answer"


# Rest


async def rested(one, fault=503):
    for _ in range(FAILURES_TO_REST):
        with pytest.raises(ServerError):
            await call(one, Asked(ServerError(fault)))


async def test_after_five_failures_in_a_row_the_server_is_left_alone_with_a_clear_sentence():
    one = gate(max_retries=0, clock=Clock())
    await rested(one)
    asked = Asked()
    with pytest.raises(ModelResting) as caught:
        await call(one, asked)
    assert asked.count == 0
    assert str(caught.value) == (
        "The server of the model gpt failed 5 times in a row, so it is not asked again for 60 s."
    )


async def test_the_attempt_that_opens_it_raises_what_really_happened():
    asked = Asked(*[ServerError(500) for _ in range(20)])
    with pytest.raises(ServerError):
        await call(gate(max_retries=10), asked)
    assert asked.count == FAILURES_TO_REST


@pytest.mark.parametrize("status", [401, 429, 400])
async def test_a_server_that_answers_at_all_is_not_ill(status):
    one = gate(max_retries=0)
    for _ in range(3 * FAILURES_TO_REST):
        with pytest.raises(ServerError):
            await call(one, Asked(ServerError(status)))
    assert await call(one, Asked()) == "answer"


async def test_an_answer_between_failures_begins_the_count_anew():
    one = gate(max_retries=0)
    for _ in range(4):
        for _ in range(FAILURES_TO_REST - 1):
            with pytest.raises(ServerError):
                await call(one, Asked(ServerError(500)))
        assert await call(one, Asked()) == "answer"


async def test_after_a_while_one_probe_is_let_through_and_its_answer_opens_the_way():
    clock = Clock()
    one = gate(max_retries=0, clock=clock)
    await rested(one)
    clock.now += REST_SECONDS
    probing, answer = asyncio.Event(), asyncio.Event()

    async def probe():
        probing.set()
        await answer.wait()
        return "alive"

    first = asyncio.create_task(call(one, probe))
    await probing.wait()
    with pytest.raises(ModelResting):
        await call(one, Asked())
    answer.set()
    assert await first == "alive"
    assert await call(one, Asked()) == "answer"


async def test_a_probe_that_fails_leaves_the_server_alone_again():
    clock = Clock()
    one = gate(max_retries=5, clock=clock)
    await rested(gate_of_same(one))
    clock.now += REST_SECONDS
    asked = Asked(*[ServerError(500)] * 9)
    with pytest.raises(ServerError):
        await call(one, asked)
    assert asked.count == 1
    with pytest.raises(ModelResting):
        await call(one, Asked())


def gate_of_same(one):
    """The same gate without retries, so that each call is one failure."""
    one._max_retries, kept = 0, one._max_retries

    class Same:
        async def call(self, asked, *, pause):
            try:
                return await one.call(asked, pause=pause)
            finally:
                if one._breaker.is_open:
                    one._max_retries = kept

    return Same()


async def test_a_probe_that_is_cancelled_makes_way_for_the_next():
    clock = Clock()
    one = gate(max_retries=0, clock=clock)
    await rested(one)
    clock.now += REST_SECONDS
    entered = asyncio.Event()

    async def endless():
        entered.set()
        await asyncio.Event().wait()

    probe = asyncio.create_task(call(one, endless))
    await entered.wait()
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    assert await call(one, Asked()) == "answer"


# Places


async def test_no_more_calls_are_under_way_than_the_model_allows_and_waiting_is_shown():
    one, pauses = gate(max_concurrency=3), Pauses()
    under_way = most = 0

    async def work():
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        under_way -= 1

    await asyncio.gather(*(call(one, work, pauses) for _ in range(20)))
    assert most == 3
    assert pauses.seen.count(Pause.MODEL) == 17
    assert (pauses.open, one.places._used) == (0, 0)


async def test_a_call_that_waits_for_its_next_attempt_holds_no_place():
    one = gate(max_concurrency=1)
    second_done = asyncio.Event()

    class HeldPauses(Pauses):
        @asynccontextmanager
        async def __call__(self, pause):
            if pause is Pause.RETRY:
                await second_done.wait()
            yield

    failing = asyncio.create_task(call(one, Asked(ServerError(503)), HeldPauses()))
    await asyncio.sleep(0)
    assert await call(one, Asked()) == "answer"
    second_done.set()
    assert await failing == "answer"


async def test_places_are_given_in_the_order_of_asking_and_never_lost_to_the_cancelled():
    places, order = Places(1), []

    async def take(number):
        async with places.one(Pauses()):
            order.append(number)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(take(number)) for number in range(6)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    tasks[4].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 1, 3, 5]
    assert places._used == 0


@pytest.mark.parametrize(("limit", "workers", "share"), [(8, 2, 4), (3, 2, 1), (1, 4, 1), (5, 0, 5), (None, 3, None)])
def test_workers_share_a_models_places_evenly(limit, workers, share):
    places = Places(limit)
    places.share_among(workers)
    assert places.limit == share


async def test_more_room_lets_the_waiting_in():
    places = Places(4)
    places.share_among(4)
    release = asyncio.Event()

    async def hold():
        async with places.one(Pauses()):
            await release.wait()

    tasks = [asyncio.create_task(hold()) for _ in range(4)]
    await asyncio.sleep(0)
    assert places._used == 1
    places.share_among(1)
    await asyncio.sleep(0)
    assert places._used == 4
    release.set()
    await asyncio.gather(*tasks)
