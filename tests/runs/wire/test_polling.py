"""What many who ask at once see of one run, and what each way of starting one does behind another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.runs.wire.callers import asks, caller_at
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
ENDED = {"success", "error", "timeout", "interrupted"}
ORDER = {"pending": 0, "running": 1, "success": 2}


async def test_once_anybody_has_seen_the_end_nobody_sees_the_run_at_work_any_more(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, **asks(scripts.gated("polled")[1]))
    place = f"/threads/{thread_id}/runs/{run['run_id']}"
    over = asyncio.Event()
    late: list[str] = []

    async def poll() -> list[str]:
        seen = []
        while not seen or seen[-1] not in ENDED:
            began_after_the_end = over.is_set()
            status = (await anna.http.get(place)).json()["status"]
            if began_after_the_end:
                late.append(status)
            if status in ENDED:
                over.set()
            seen.append(status)
        return seen

    polling = [asyncio.create_task(poll()) for _client in range(20)]
    while (await anna.http.get(place)).json()["status"] != "running":
        pass
    model.open_gate("polled")
    for seen in await asyncio.gather(*polling):
        ranks = [ORDER[status] for status in seen]
        assert ranks == sorted(ranks)
        assert seen[-1] == "success"
    assert set(late) <= {"success"}


@pytest.mark.parametrize("route", ["", "/wait", "/stream"])
async def test_what_may_not_wait_is_refused_on_every_way_in(anna: Caller, model: ScriptedModel, route: str):
    thread_id = await anna.thread()
    first = await anna.sdk.runs.create(thread_id, **asks(scripts.gated(f"busy{route}")[1]))
    body = asks(scripts.instant()[1], multitask_strategy="reject")
    assert (await anna.post(f"/threads/{thread_id}/runs{route}", body)).status_code == 409
    odd = asks(scripts.instant()[1], multitask_strategy="sideways")
    assert (await anna.post(f"/threads/{thread_id}/runs{route}", odd)).status_code == 422
    model.open_gate(f"busy{route}")
    await anna.sdk.runs.join(thread_id, first["run_id"])
    assert [run["run_id"] for run in await anna.sdk.runs.list(thread_id)] == [first["run_id"]]


@pytest.mark.parametrize("route", ["", "/wait", "/stream"])
@pytest.mark.parametrize("strategy", ["enqueue", "interrupt"])
async def test_what_may_wait_or_interrupt_does_so_on_every_way_in(
    anna: Caller, model: ScriptedModel, route: str, strategy: str
):
    thread_id = await anna.thread()
    gate = f"{strategy}{route}"
    first = await anna.sdk.runs.create(thread_id, **asks(scripts.gated(gate)[1]))
    body = asks(scripts.says("The second.")[1], multitask_strategy=strategy)
    second = asyncio.create_task(anna.post(f"/threads/{thread_id}/runs{route}", body))
    while len(await anna.sdk.runs.list(thread_id)) < 2:
        pass
    if strategy == "enqueue":
        model.open_gate(gate)
    assert (await second).status_code == 200
    newest, _oldest = await anna.sdk.runs.list(thread_id)
    await anna.sdk.runs.join(thread_id, newest["run_id"])
    ended = await anna.sdk.runs.get(thread_id, first["run_id"])
    assert ended["status"] == ("success" if strategy == "enqueue" else "interrupted")
    values = await anna.sdk.runs.join(thread_id, newest["run_id"])
    assert values["messages"][-1]["content"] == "The second."


async def test_of_many_who_ask_at_once_each_sees_what_its_own_key_may_see(
    anna: Caller, bert: Caller, web: WebProcess, model: ScriptedModel
):
    hers, his = await anna.thread(), await bert.thread()
    ready = asks(scripts.instant()[1])
    her_run, his_run = await anna.sdk.runs.create(hers, **ready), await bert.sdk.runs.create(his, **ready)
    places = [(hers, her_run["run_id"]), (his, his_run["run_id"]), (his, her_run["run_id"]), ("x", her_run["run_id"])]
    nobody = caller_at(web.url, None, anna.key[:-1] + "?")
    try:
        asked = [
            caller.http.get(f"/threads/{thread_id}/runs/{run_id}")
            for _round in range(5)
            for caller in (anna, bert, nobody)
            for thread_id, run_id in places
        ]
        answers = [answer.status_code for answer in await asyncio.gather(*asked)]
    finally:
        await nobody.close()
    assert answers == [200, 404, 404, 422, 404, 200, 404, 422, 401, 401, 401, 401] * 5
