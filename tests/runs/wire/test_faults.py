"""Processes that die under the programs that use them: a web process in the middle of a stream, a worker in its run."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from runs.models import Run
from runs.statuses import RunStatus
from tests.patience import PATIENCE_SECONDS
from tests.runs.invariants import assert_whole
from tests.runs.wire.callers import asks, caller_at, contents, events_of, eventually, in_database, said, text_in
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess, WorkerProcesses
    from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.usefixtures("transactional_db", "worker"), pytest.mark.faults]
LEAD = "lead_agent"


async def begun_parts(stream: Any, parts: list[Any]) -> None:
    async for part in stream:
        parts.append(part)
        if part.event == "messages":
            return


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_stream_goes_on_when_the_web_process_is_started_again(
    anna: Caller, web: WebProcess, model: ScriptedModel, number: int
):
    """The run is a worker's, so it never notices; the SDK comes back with the id of the last event it has seen."""
    thread_id, gate = await anna.thread(), f"web-{number}"
    words = {
        "text": "First half, second half.",
        "chunks": ["First half, ", "second half."],
        "gate": gate,
        "gate_after": 1,
    }
    stream = anna.sdk.runs.stream(thread_id, LEAD, input=said(scripts.script(words)[1]), stream_mode="messages-tuple")
    parts: list[Any] = []
    await begun_parts(stream, parts)
    await asyncio.to_thread(web.end, number)
    rest = asyncio.create_task(collected(stream))
    await asyncio.to_thread(web.start)
    model.open_gate(gate)
    parts += await rest
    assert text_in(parts) == "First half, second half."
    assert [part.event for part in parts].count("metadata") == 1
    assert len({part.id for part in parts}) == len(parts)
    (run,) = await anna.sdk.runs.list(thread_id)
    assert run["status"] == "success"
    assert (await in_database(Run.objects.get, pk=run["run_id"])).attempt == 1


async def collected(stream: Any) -> list[Any]:
    return [part async for part in stream]


@pytest.mark.filterwarnings("ignore:Request failed, attempting reconnect:UserWarning")  # the SDK says what it does
async def test_a_wait_outlives_the_web_process_that_took_it(anna: Caller, web: WebProcess, model: ScriptedModel):
    thread_id = await anna.thread()
    script_id, prompt = scripts.gated("waits")
    # A client of its own: it has no second, idle connection that dies at the same time.
    client = caller_at(web.url, anna.user, anna.key)
    taken = asyncio.Event()

    async def answered(_response: Any) -> None:
        taken.set()

    client.sdk.http.client.event_hooks["response"].append(answered)
    waiting = asyncio.create_task(client.sdk.runs.wait(thread_id, LEAD, input=said(prompt)))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    # Before the answer's head has come, which says where the run is, nobody can come back to it.
    await asyncio.wait_for(taken.wait(), PATIENCE_SECONDS)
    await asyncio.to_thread(web.end, signal.SIGKILL)
    await asyncio.to_thread(web.start)
    model.open_gate("waits")
    assert contents(await waiting)[-1] == f"ok:{script_id}"
    assert len(await client.sdk.runs.list(thread_id)) == 1
    await client.close()


async def test_a_run_whose_worker_is_killed_goes_on_under_its_stream(
    anna: Caller, worker: WorkerProcesses, model: ScriptedModel
):
    """Steps that were done are not done again, and whoever follows sees each message once."""
    thread_id = await anna.thread()
    write = scripts.call("write_file", path="once.txt", content="x")
    script_id, prompt = scripts.script({"calls": [write]}, {"text": "Written.", "gate": "killed"})
    stream = anna.sdk.runs.stream(thread_id, LEAD, input=said(prompt), stream_mode=["updates", "values"])
    reading = asyncio.create_task(collected(stream))
    await model.until(lambda seen: len(seen.calls_of(script_id)) == 2)
    run: Run = await in_database(Run.objects.get, thread_id=thread_id)
    await in_database(worker.kill, run.worker)
    model.open_gate("killed")
    parts = await reading
    assert parts[-1].event == "end"
    tools = [part for part in parts if part.event == "updates" and "tools" in part.data]
    assert len(tools) == 1
    assert contents([part for part in parts if part.event == "values"][-1].data)[-1] == "Written."
    ended: Run = await in_database(Run.objects.get, pk=run.pk)
    assert (ended.status, ended.attempt, ended.lost_workers) == (RunStatus.SUCCESS, 2, 1)
    assert ended.worker != run.worker
    await in_database(assert_whole, [run.thread_id])


async def test_a_cancel_reaches_a_run_on_any_worker(anna: Caller):
    runs = []
    for _ in range(6):
        thread_id = await anna.thread()
        runs.append(await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.hanging()[1])))
    await eventually(lambda: all_running(anna, runs))
    await asyncio.gather(*(anna.sdk.runs.cancel(run["thread_id"], run["run_id"], wait=True) for run in runs))
    assert {(await anna.sdk.runs.get(run["thread_id"], run["run_id"]))["status"] for run in runs} == {"interrupted"}


async def all_running(caller: Caller, runs: list[Any]) -> bool:
    return all([(await caller.sdk.runs.get(run["thread_id"], run["run_id"]))["status"] == "running" for run in runs])


async def test_an_event_of_a_megabyte_comes_whole_to_every_reader(anna: Caller):
    thread_id = await anna.thread()
    text = "你好 deer " * 15_000
    long = [{"type": "human", "content": text, "id": f"long-{number}"} for number in range(6)]
    await anna.sdk.threads.update_state(thread_id, {"messages": long})
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.says("Read.")[1]), stream_mode="values")
    streams = [anna.sdk.runs.join_stream(thread_id, run["run_id"], stream_mode="values") for _ in range(3)]
    told = await asyncio.gather(*map(collected, streams))
    assert len(json.dumps(told[0][-2].data, ensure_ascii=False).encode()) > 1_000_000
    last = [[part for part in parts if part.event == "values"][-1].data for parts in told]
    assert all(contents(state)[:6] == [text] * 6 for state in last)
    assert len({json.dumps([part.id for part in parts]) for parts in told}) == 1


async def test_a_reader_who_does_not_read_holds_nobody_up(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    body = asks(scripts.tokens(3000)[1], stream_mode=["messages-tuple", "values"])
    async with anna.http.stream("POST", f"/threads/{thread_id}/runs/stream", json=body) as answer:
        assert answer.status_code == 200
        (run,) = await anna.sdk.runs.list(thread_id)
        values = await anna.sdk.runs.join(thread_id, run["run_id"])
        assert contents(values)[-1].split()[-1] == "t2999"
        text = "".join([piece async for piece in answer.aiter_text()])
    events = events_of(text)
    assert events[-1].name == "end"
    assert len({event.id for event in events}) == len(events)
