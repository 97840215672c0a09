"""Every follower gets every row once and in order, whatever happens to rings, connections and neighbours."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing

import pytest
from django.conf import settings

from runs import log
from runs.doorbell import EVERYTHING, Ring
from runs.event_types import EventType
from runs.lifecycle import Progress
from runs.models import Event
from runs.relay import Relay
from tests.patience import PATIENCE_SECONDS
from tests.runs.acts import claimed, delta, finish
from tests.runs.factories import started
from tests.runs.integration.following import (
    BEGUN,
    HOURS,
    Follower,
    Watched,
    rows_upto,
    running,
    seqs,
    store,
    write,
)


# --- gapless and in order -----------------------------------------------------------------------------------------
async def test_many_followers_from_different_places_get_every_row_once_and_in_order(database, conversation):
    run, held = conversation
    async with running(Relay()) as relay:
        last = BEGUN + 300
        reading = [asyncio.create_task(rows_upto(relay, run.thread_id, after, last)) for after in (0, 1, 2, BEGUN) * 5]
        answers = [database.write(Progress(held=held, entries=[delta()])) for _ in range(150)]
        await asyncio.gather(*answers)
        reading += [asyncio.create_task(rows_upto(relay, run.thread_id, after, last)) for after in (0, 50, 153)]
        await write(database, held, 150)
        for place, rows in zip([*(0, 1, 2, BEGUN) * 5, 0, 50, 153], await asyncio.gather(*reading), strict=True):
            assert [row.seq for row in rows] == seqs(place + 1, last)


async def test_a_follower_who_joins_late_takes_nothing_from_those_who_were_there(database, conversation):
    run, held = conversation
    async with running(Watched()) as relay:
        early = Follower(relay, run.thread_id)
        await early.until(BEGUN)
        await write(database, held)
        relay.ring()
        await early.until(BEGUN + 1)
        await write(database, held, 4)  # not rung yet
        late = Follower(relay, run.thread_id, after=10**6)  # has to look where the thread ends
        await relay.until_read(relay.reads + 1)
        await write(database, held)
        relay.ring(Ring(threads=frozenset({run.thread_id})))
        assert await early.until(BEGUN + 6) == seqs(1, BEGUN + 6)
        assert await late.until(BEGUN + 6) == [BEGUN + 6]
        await early.leave()
        await late.leave()


@pytest.mark.parametrize("everything", [True, False])
async def test_what_is_written_while_the_first_follower_is_being_placed_reaches_it(database, conversation, everything):
    run, held = conversation
    async with running(Watched()) as relay:

        async def write_and_ring() -> None:
            await write(database, held)
            relay.ring(EVERYTHING if everything else Ring(threads=frozenset({run.thread_id})))

        relay.after_read = write_and_ring  # the thread's newest number was read, the feed is not open yet
        rows = await rows_upto(relay, run.thread_id, BEGUN, BEGUN + 1)
        assert [row.seq for row in rows] == [BEGUN + 1]


async def test_a_number_beyond_the_end_counts_as_the_end(database, conversation):
    run, held = conversation
    async with running(Watched()) as relay:
        followers = [Follower(relay, run.thread_id, after) for after in (BEGUN + 1, 10**15)]
        there = Follower(relay, run.thread_id)
        await there.until(BEGUN)
        await relay.until_read(4)  # each has looked where the thread ends
        await write(database, held)
        relay.ring()
        assert [await follower.until(BEGUN + 1) for follower in followers] == [[BEGUN + 1]] * 2
        for follower in (*followers, there):
            await follower.leave()


async def test_a_number_below_zero_counts_as_the_beginning(database, conversation):
    run, _held = conversation
    async with running(Watched()) as relay:
        assert [row.seq for row in await rows_upto(relay, run.thread_id, -5, BEGUN)] == seqs(1, BEGUN)


async def test_a_long_conversation_comes_whole_and_without_the_pieces_of_finished_replies(database, conversation):
    run, held = conversation
    kinds = ["delta"] * 2500 + ["message"] + ["delta"] * 2400 + ["message"] + ["task.step"] * 98
    last = await database.call(store, run, kinds)
    await write(database, held, 2)
    async with running(Watched()) as relay:
        rows = await rows_upto(relay, run.thread_id, 0, last + 2)
        whole = await rows_upto(relay, run.thread_id, 2, last + 2)
    assert [row.type for row in rows[BEGUN:]] == ["message"] * 2 + ["task.step"] * 98 + ["delta"] * 2
    assert [row.seq for row in rows] == sorted(row.seq for row in rows)
    assert [row.seq for row in whole] == seqs(3, last + 2)  # who resumes gets every piece


async def test_a_follower_far_behind_a_fast_writer_misses_nothing(database, conversation):
    run, _held = conversation
    async with running(Watched()) as relay:
        there = Follower(relay, run.thread_id)
        await there.until(BEGUN)
        async with asyncio.timeout(PATIENCE_SECONDS), aclosing(relay.follow(run.thread_id, 1)) as batches:
            got = [row.seq for row in await anext(batches)]  # and now it is slow
            last = await database.call(store, run, ["delta"] * 4500)
            relay.ring()
            await there.until(last)
            while got[-1] < last:
                got += [row.seq for row in await anext(batches)]
        assert got == seqs(2, last)
        await there.leave()


async def test_pruned_pieces_are_passed_over(database, conversation):
    run, held = conversation
    last = await database.call(store, run, ["delta"] * 40)

    def prune() -> None:
        Event.objects.filter(thread_id=run.thread_id, seq__gt=5, seq__lte=30).delete()

    async with running(Watched()) as relay:
        there = Follower(relay, run.thread_id, after=1)
        await there.until(last)
        await database.call(prune)
        await write(database, held)
        relay.ring()
        for after, expected in ((1, [*seqs(2, 5), *seqs(31, last + 1)]), (10, seqs(31, last + 1))):
            rows = await rows_upto(relay, run.thread_id, after, last + 1)
            assert [row.seq for row in rows] == expected
        assert await there.until(last + 1) == seqs(2, last + 1)
        await there.leave()


async def test_a_follower_whose_remaining_rows_were_all_pruned_goes_on_with_the_next(database, conversation):
    run, held = conversation
    last = await database.call(store, run, ["delta"] * 10)
    await database.call(lambda: Event.objects.filter(thread_id=run.thread_id, seq__gt=5).delete())
    async with running(Watched()) as relay:
        behind = Follower(relay, run.thread_id, after=7)
        there = Follower(relay, run.thread_id)
        await there.until(5)
        await relay.until_read(4)
        await write(database, held)
        relay.ring()
        assert await behind.until(last + 1) == [last + 1]
        await behind.leave()
        await there.leave()


async def test_threads_do_not_get_each_others_rows(database, conversation):
    _run, held = conversation
    other = await database.call(started)
    async with running(Relay()) as relay:
        follower = Follower(relay, other.thread_id)
        await follower.until(2)
        await write(database, held, 3)
        await database.call(claimed, other)
        assert await follower.until(3) == [1, 2, 3]
        await follower.leave()


# --- rings --------------------------------------------------------------------------------------------------------
async def test_without_any_ring_rows_come_with_the_regular_look(database, conversation):
    run, held = conversation
    async with running(Watched(look_seconds=0.05)) as relay:
        follower = Follower(relay, run.thread_id)
        await follower.until(BEGUN)
        await write(database, held, 3)
        assert await follower.until(BEGUN + 3) == seqs(1, BEGUN + 3)
        await follower.leave()


async def test_rings_in_a_burst_share_reads_and_silence_costs_none(database, conversation):
    run, held = conversation
    async with running(Watched()) as relay:
        followers = [Follower(relay, run.thread_id) for _ in range(50)]
        for follower in followers:
            await follower.until(BEGUN)
        before = relay.reads
        assert before <= 2 * len(followers)
        await write(database, held, 20)
        for _ in range(100):
            relay.ring(Ring(threads=frozenset({run.thread_id})))
        for follower in followers:
            assert await follower.until(BEGUN + 20) == seqs(1, BEGUN + 20)
        assert relay.reads - before <= 2  # one read serves all fifty
        for _ in range(200):
            await asyncio.sleep(0)
        assert relay.reads - before <= 2
        for follower in followers:
            await follower.leave()
        relay.ring()
        for _ in range(200):
            await asyncio.sleep(0)
        assert relay.reads - before <= 2  # nobody follows any more


_WRITER = """
import sys, django
django.setup()
from runs.lifecycle import Held, Progress, commit_one
from runs.event_types import Delta
from uuid import UUID
held = Held(UUID(sys.argv[1]), UUID(sys.argv[2]), int(sys.argv[3]))
for number in range(20):
    commit_one(Progress(held=held, entries=[Delta(id="m", text=str(number))]))
"""


async def test_what_another_process_writes_is_heard(database, conversation, child_environment):
    run, held = conversation
    environment = {**child_environment, "DJANGO_SETTINGS_MODULE": "deerflow_site.settings"}
    arguments = [sys.executable, "-c", _WRITER, str(held.run_id), str(held.thread_id), str(held.fence)]
    async with running(Relay(look_seconds=HOURS)) as relay:
        follower = Follower(relay, run.thread_id)
        await follower.until(BEGUN)
        writer = await asyncio.to_thread(
            subprocess.run, arguments, env=environment, cwd=settings.BASE_DIR, capture_output=True, timeout=60
        )
        assert writer.returncode == 0, writer.stderr.decode()
        assert await follower.until(BEGUN + 20) == seqs(1, BEGUN + 20)
        await follower.leave()


async def test_the_end_of_a_run_is_followed_like_everything_else(database, conversation):
    run, held = conversation
    async with running(Relay()) as relay:
        reading = asyncio.create_task(rows_upto(relay, run.thread_id, 0, BEGUN + 2))
        await database.call(lambda: finish(held, answer="done"))
        rows = await reading
    assert [row.type for row in rows][-2:] == [EventType.MESSAGE, EventType.RUN_ENDED]
    assert await database.call(log.last_seqs, [run.thread_id]) == {run.thread_id: BEGUN + 2}
