"""The stream of a thread through the real SDK: all runs, one after the other, resumed by the last id."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.runs.wire.callers import contents, said
from tests.runs.wire.test_access import in_shape
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller

pytestmark = pytest.mark.usefixtures("transactional_db", "worker", "model")
LEAD = "lead_agent"
PATIENCE_SECONDS = 60


async def told(caller: Caller, thread_id: str, runs: int, **options: Any) -> list[Any]:
    """The parts of a thread's stream until so many runs are done."""
    parts: list[Any] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for part in await caller.sdk.threads.join_stream(thread_id, **options):
            parts.append(part)
            runs -= part.event == "metadata" and part.data.get("status") == "run_done"
            if not runs:
                break
    return parts


async def talked(caller: Caller, *answers: str, **options: Any) -> str:
    thread_id = await caller.thread()
    for answer in answers:
        await caller.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says(answer)[1]), **options)
    return thread_id


async def test_all_runs_of_a_thread_are_told_in_their_order_with_ids(anna: Caller):
    thread_id = await talked(anna, "One.", "Two.")
    runs = [run["run_id"] for run in await anna.sdk.runs.list(thread_id)][::-1]
    parts = await told(anna, thread_id, 2, last_event_id="-1")
    about = [part.data for part in parts if part.event == "metadata"]
    assert [one["run_id"] for one in about] == [runs[0], runs[0], runs[1], runs[1]]
    assert [one.get("status") for one in about] == [None, "run_done", None, "run_done"]
    values = [part.data for part in parts if part.event == "values"]
    assert contents(values[-1])[-1] == "Two."
    assert values[-1] == (await anna.sdk.threads.get(thread_id))["values"]
    ids = [part.id for part in parts]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    place = parts[2].id
    assert await told(anna, thread_id, 2, last_event_id=place) == parts[3:]


async def test_only_the_lifecycle_is_told_when_only_that_is_asked_for(anna: Caller):
    thread_id = await talked(anna, "One.")
    parts = await told(anna, thread_id, 1, last_event_id="-1", stream_mode="lifecycle")
    assert [part.event for part in parts] == ["metadata", "metadata"]
    async with anna.http.stream(
        "GET", f"/threads/{thread_id}/stream?stream_modes=lifecycle", headers={"last-event-id": "-1"}
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["location"] == f"/threads/{thread_id}/stream"
        lines = answer.aiter_lines()
        assert await anext(lines) == "event: metadata"


async def test_without_an_id_only_what_comes_is_told(anna: Caller):
    thread_id = await talked(anna, "Before.")
    joined = asyncio.ensure_future(told(anna, thread_id, 1, stream_mode=["run_modes", "state_update"]))
    # The stream has begun at the latest when a run that was started after it is told.
    while not joined.done():
        await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("After.")[1]))
    parts = await joined
    assert "Before." not in [contents(part.data)[-1] for part in parts if part.event == "values"]
    assert parts[-1].data["status"] == "run_done"


async def test_a_change_of_the_state_is_told_when_it_is_asked_for(anna: Caller):
    thread_id = await talked(anna, "One.")
    await anna.sdk.threads.update_state(thread_id, {"note": "x"})
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Two.")[1]))
    wanted = ["state_update", "run_modes"]
    parts = await told(anna, thread_id, 2, last_event_id="-1", stream_mode=wanted)
    noted = [part.data.get("note") for part in parts if part.event == "values"]
    assert (noted[0], noted[-1]) == (None, "x")
    assert noted.count(None) == 2


async def test_a_mode_that_is_none_is_named(anna: Caller):
    answer = await anna.http.get(f"/threads/{await anna.thread()}/stream?stream_mode=odd")
    assert in_shape(answer, 422, "invalid")["metadata"]["field"] == "stream_mode"
