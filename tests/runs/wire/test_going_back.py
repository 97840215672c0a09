"""Runs that are rolled back, and runs that begin at an earlier step of their thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from langgraph_sdk.errors import NotFoundError

from runs import history
from runs.models import Message, Run
from tests.runs.wire.callers import asks, contents, followed, in_database, said, unknown_id
from tests.runs.wire.test_access import in_shape
from tests.runs.wire.test_stopping import hanging
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"


async def words(caller: Caller, thread_id: str) -> list[str]:
    values: Any = (await caller.sdk.threads.get(thread_id))["values"]
    return contents(values) if values else []


async def last_step(thread_id: str) -> str:
    """The id of the newest checkpoint."""

    def look() -> int:
        return int(Message.objects.filter(thread_id=thread_id).order_by("-seq").values_list("seq", flat=True)[0])

    return str(history.checkpoint_id(UUID(thread_id), await in_database(look)))


async def test_a_run_that_takes_anothers_place_leaves_nothing_of_it(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Before.")[1]))
    before = await words(anna, thread_id)
    running, _prompt = await hanging(anna, model, thread_id)
    waits = (await anna.sdk.runs.create(thread_id, LEAD, input=said("waits")))["run_id"]
    prompt = scripts.says("Instead.")[1]
    new = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt), multitask_strategy="rollback")
    assert new["multitask_strategy"] == "rollback"
    values = await anna.sdk.runs.join(thread_id, new["run_id"])
    assert contents(values) == [*before, prompt, "Instead."]
    for gone in (running, waits):
        with pytest.raises(NotFoundError):
            await anna.sdk.runs.get(thread_id, gone)
    assert len(await anna.sdk.runs.list(thread_id)) == 2
    assert (await anna.sdk.threads.get(thread_id))["status"] == "idle"


async def test_a_run_that_had_not_begun_is_replaced_too(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.runs.create(thread_id, LEAD, input=said("never"), after_seconds=3600)
    prompt = scripts.says("Instead.")[1]
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=said(prompt), multitask_strategy="rollback")
    assert contents(values) == [prompt, "Instead."]
    assert len(await anna.sdk.runs.list(thread_id)) == 1


async def test_of_many_that_take_each_others_place_the_last_one_stays_alone(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    body = asks(scripts.gated("rolling")[1], multitask_strategy="rollback")
    answers = await asyncio.gather(*[anna.post(f"/threads/{thread_id}/runs", body) for _ in range(10)])
    assert [answer.status_code for answer in answers] == [200] * 10
    model.open_gate("rolling")
    (run,) = await anna.sdk.runs.list(thread_id)
    assert len((await anna.sdk.runs.join(thread_id, run["run_id"]))["messages"]) == 2
    assert (await anna.sdk.threads.get(thread_id))["status"] == "idle"


@pytest.mark.parametrize("wait", [0, 1])
async def test_a_run_that_is_rolled_back_is_gone_with_its_words(anna: Caller, model: ScriptedModel, wait: int):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Before.")[1]))
    before = await words(anna, thread_id)
    run_id, _prompt = await hanging(anna, model, thread_id)
    place = f"/threads/{thread_id}/runs/{run_id}"
    follower = await followed(anna, place)
    answer = await anna.post(f"{place}/cancel?wait={wait}&action=rollback")
    assert (answer.status_code, answer.content) == ((200, b"{}") if wait else (202, b""))
    in_shape(await anna.http.get(place), 404, "not_found")
    in_shape(await anna.post(f"{place}/cancel?action=rollback"), 404, "not_found")
    assert await words(anna, thread_id) == before
    assert (await anna.sdk.threads.get(thread_id))["status"] == "idle"
    assert (await follower)[-1].name == "end"
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("After.")[1]))
    assert contents(values)[: len(before)] == before
    assert contents(values)[-1] == "After."


async def test_an_ended_run_is_not_rolled_back(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Said.")[1]))
    (run,) = await anna.sdk.runs.list(thread_id)
    answer = await anna.post(f"/threads/{thread_id}/runs/{run['run_id']}/cancel?action=rollback")
    in_shape(answer, 404, "already_ended")
    assert (await words(anna, thread_id))[-1] == "Said."


async def test_many_are_rolled_back_at_once(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    await hanging(anna, model, thread_id)
    await anna.sdk.runs.create(thread_id, LEAD, input=said("waits"))
    await anna.sdk.runs.cancel_many(status="all", action="rollback")
    assert await anna.sdk.runs.list(thread_id) == []
    assert await words(anna, thread_id) == []


async def test_a_rolled_back_run_takes_what_it_delegated_with_it(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    child_id, child = scripts.hanging()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.delegate_to([(child_id, child)])[1]))
    await model.until(lambda seen: bool(seen.calls_of(child_id)))
    await anna.post(f"/threads/{thread_id}/runs/{run['run_id']}/cancel?action=rollback")
    await model.until(lambda seen: all(call.disconnected_at for call in seen.calls_of(child_id)), 60)
    assert await in_database(Run.objects.filter(root_id=run["run_id"]).count) == 0
    assert await words(anna, thread_id) == []


async def test_an_unknown_way_to_stop_is_refused(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    run_id, _prompt = await hanging(anna, model, thread_id)
    for path in (f"/threads/{thread_id}/runs/{run_id}/cancel?action=x", "/runs/cancel?action=x"):
        answer = await anna.post(path, {"status": "all"})
        assert in_shape(answer, 422, "invalid")["metadata"]["field"] == "action"
    await anna.sdk.runs.cancel(thread_id, run_id, wait=True)


@pytest.mark.parametrize("spelling", ["checkpoint_id", "checkpoint"])
async def test_a_run_begins_at_an_earlier_step(anna: Caller, spelling: str):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("First.")[1]))
    step = await last_step(thread_id)
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Second.")[1]))
    fork: Any = (
        {"checkpoint_id": step}
        if spelling == "checkpoint_id"
        else {"checkpoint": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": step}}
    )
    prompt = scripts.says("Otherwise.")[1]
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=said(prompt), **fork)
    assert contents(values)[1:] == ["First.", prompt, "Otherwise."]


async def test_a_run_that_waits_begins_at_its_step_when_its_turn_comes(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    prompt = scripts.says("Alpha.")[1]
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(prompt))
    step = await last_step(thread_id)
    await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.gated("fork")[1]))
    forked = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.says("Beta.")[1]), checkpoint_id=step)
    model.open_gate("fork")
    values = await anna.sdk.runs.join(thread_id, forked["run_id"])
    assert [contents(values)[place] for place in (0, 1, -1)] == [prompt, "Alpha.", "Beta."]
    assert len(contents(values)) == 4


async def test_a_run_whose_step_was_rolled_back_while_it_waited_says_so(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    running, _prompt = await hanging(anna, model, thread_id)
    step = await last_step(thread_id)  # of the run that works
    waits = await anna.sdk.runs.create(thread_id, LEAD, input=said("never"), checkpoint_id=step)
    await anna.post(f"/threads/{thread_id}/runs/{running}/cancel?action=rollback")
    run = await anna.sdk.runs.get(thread_id, waits["run_id"])
    assert (run["status"], run["error"]["error"]) == ("error", "checkpoint_gone")  # type: ignore[typeddict-item]
    assert (await anna.sdk.threads.get(thread_id))["status"] == "error"


async def test_a_step_that_is_not_there_is_not_found(anna: Caller):
    thread_id, other = await anna.thread(), await anna.thread()
    await anna.sdk.runs.wait(other, LEAD, input=said(scripts.instant()[1]))
    for step in (unknown_id(), await last_step(other)):
        for path in (f"/threads/{thread_id}/runs", "/runs"):
            in_shape(await anna.post(path, asks("x", checkpoint_id=step)), 404, "not_found")
    assert await anna.sdk.runs.list(thread_id) == []


async def test_a_command_that_only_updates_is_a_message(anna: Caller):
    thread_id = await anna.thread()
    command: Any = {"update": said(scripts.says("Updated.")[1])}
    values = await anna.sdk.runs.wait(thread_id, LEAD, command=command)
    assert contents(values)[-1] == "Updated."
