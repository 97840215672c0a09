"""Databases that fail, relays that stop: followers miss nothing and nothing is left behind."""

from __future__ import annotations

import asyncio

import pytest
from django.db import connection

from runs.models import Thread
from runs.relay import Relay, relay
from tests.patience import PATIENCE_SECONDS
from tests.runs.integration.following import (
    BEGUN,
    Follower,
    Watched,
    rows_upto,
    running,
    seqs,
    write,
)


def _rename_events(old: str, new: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")


async def test_after_a_database_error_followers_get_what_they_missed(database, conversation):
    run, held = conversation
    async with running(Watched(look_seconds=0.02)) as relay:
        follower = Follower(relay, run.thread_id)
        await follower.until(BEGUN)
        await write(database, held)
        await follower.until(BEGUN + 1)
        await database.call(_rename_events, "runs_event", "runs_event_away")
        try:
            await database.call(lambda: Thread.objects.filter(pk=run.thread_id).update(last_seq=BEGUN + 2))
            relay.ring()
            await relay.until_read(relay.reads + 2)  # it looks again, in spite of the error
            await database.call(lambda: Thread.objects.filter(pk=run.thread_id).update(last_seq=BEGUN + 1))
        finally:
            await database.call(_rename_events, "runs_event_away", "runs_event")
        await write(database, held)
        assert await follower.until(BEGUN + 2) == seqs(1, BEGUN + 2)
        await follower.leave()


@pytest.mark.postgres
async def test_after_all_connections_were_cut_followers_get_what_they_missed(database, conversation):
    run, held = conversation

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = ''"
            )

    async with running(Relay(look_seconds=0.05)) as relay:
        follower = Follower(relay, run.thread_id)
        await follower.until(BEGUN)
        await database.call(cut)
        await write(database, held, 3)
        assert await follower.until(BEGUN + 3) == seqs(1, BEGUN + 3)
        await follower.leave()


async def test_a_reader_that_cannot_be_served_is_told(database, conversation):
    run, _held = conversation
    async with running(Watched()) as relay:
        await database.call(_rename_events, "runs_event", "runs_event_away")
        try:
            with pytest.raises(Exception, match="runs_event"):
                await rows_upto(relay, run.thread_id, 0, 1)
        finally:
            await database.call(_rename_events, "runs_event_away", "runs_event")
        assert [row.seq for row in await rows_upto(relay, run.thread_id, 0, BEGUN)] == seqs(1, BEGUN)


async def test_stopping_ends_every_follower(database, conversation):
    run, _held = conversation
    async with running(Relay()) as relay:
        followers = [Follower(relay, run.thread_id) for _ in range(3)]
        for follower in followers:
            await follower.until(BEGUN)
        await relay.stop()
        await asyncio.wait_for(asyncio.gather(*(follower.task for follower in followers)), PATIENCE_SECONDS)
        await relay.stop()  # a second stop is no fault
        assert [row.seq for row in await rows_upto(relay, run.thread_id, 0, BEGUN)] == seqs(1, BEGUN)  # it starts again


async def test_nothing_is_kept_for_threads_nobody_follows(database, conversation):
    run, _held = conversation
    async with running(Watched()) as relay:
        for _ in range(20):
            await rows_upto(relay, run.thread_id, 0, BEGUN)
        assert not relay._feeds


def test_there_is_one_relay_for_each_loop():
    async def own() -> tuple[Relay, Relay]:
        return relay(), relay()

    (first, again), (other, _again) = asyncio.run(own()), asyncio.run(own())
    assert first is again is not other
