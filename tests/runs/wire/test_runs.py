"""Threads and runs through the real SDK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.runs.wire.callers import asks, contents, said, unknown_id
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"


async def test_a_run_that_is_waited_for_gives_the_final_values(anna: Caller):
    thread_id = await anna.thread()
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Rome.")[1]))
    assert [message["type"] for message in values["messages"]] == ["human", "ai"]
    assert contents(values)[-1] == "Rome."
    thread = await anna.sdk.threads.get(thread_id)
    assert (thread["status"], thread["values"], thread["error"]) == ("idle", values, None)


async def test_a_created_run_is_pending_and_can_be_joined_read_and_listed(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.gated("created")[1]), metadata={"of": "test"})
    assert (run["status"], run["thread_id"], run["metadata"]) == ("pending", thread_id, {"of": "test"})
    assert (await anna.sdk.threads.get(thread_id))["status"] == "busy"
    model.open_gate("created")
    values = await anna.sdk.runs.join(thread_id, run["run_id"])
    assert contents(values)[-1].startswith("ok:gated")
    read = await anna.sdk.runs.get(thread_id, run["run_id"])
    assert (read["status"], read["error"], read["assistant_id"]) == ("success", None, run["assistant_id"])
    assert read["metadata"]["of"] == "test"
    assert [listed["run_id"] for listed in await anna.sdk.runs.list(thread_id)] == [run["run_id"]]


async def test_runs_are_listed_newest_first_by_page_status_and_field(anna: Caller):
    thread_id = await anna.thread()
    body = said(scripts.instant()[1])
    made = [(await anna.sdk.runs.create(thread_id, LEAD, input=body))["run_id"] for _ in range(3)]
    await anna.sdk.runs.join(thread_id, made[-1])
    assert [run["run_id"] for run in await anna.sdk.runs.list(thread_id)] == made[::-1]
    assert [run["run_id"] for run in await anna.sdk.runs.list(thread_id, limit=1, offset=1)] == [made[1]]
    assert len(await anna.sdk.runs.list(thread_id, status="success")) == 3
    assert await anna.sdk.runs.list(thread_id, status="error") == []
    assert await anna.sdk.runs.list(thread_id, limit=1, select=["run_id"]) == [{"run_id": made[2]}]


async def test_a_second_run_waits_its_turn_and_the_values_of_the_first_do_not_hold_its_message(
    anna: Caller, model: ScriptedModel
):
    thread_id = await anna.thread()
    first = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.gated("enqueue")[1]))
    second = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.says("Second.")[1]))
    joined = asyncio.create_task(anna.sdk.runs.join(thread_id, first["run_id"]))
    assert (await anna.sdk.runs.get(thread_id, second["run_id"]))["status"] == "pending"
    model.open_gate("enqueue")
    assert len((await joined)["messages"]) == 2
    assert contents(await anna.sdk.runs.join(thread_id, second["run_id"]))[-1] == "Second."
    assert len((await anna.sdk.runs.join(thread_id, first["run_id"]))["messages"]) == 2


async def test_a_run_that_may_not_wait_is_refused_and_leaves_nothing(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.gated("reject")[1]))
    with pytest.raises(ConflictError) as refused:
        await anna.sdk.runs.create(thread_id, LEAD, input=said("no"), multitask_strategy="reject")
    assert refused.value.code == "thread_busy"
    assert len(await anna.sdk.runs.list(thread_id)) == 1
    model.open_gate("reject")
    await anna.sdk.runs.join(thread_id, run["run_id"])


async def test_an_interrupting_run_ends_the_running_one_and_keeps_its_message(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    script_id, prompt = scripts.hanging()
    first = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    second = await anna.sdk.runs.create(
        thread_id, LEAD, input=said(scripts.says("Now.")[1]), multitask_strategy="interrupt"
    )
    assert second["multitask_strategy"] == "interrupt"
    values = await anna.sdk.runs.join(thread_id, second["run_id"])
    assert [message["type"] for message in values["messages"]][:2] == ["human", "human"]
    assert (contents(values)[0], contents(values)[-1]) == (prompt, "Now.")
    assert (await anna.sdk.runs.get(thread_id, first["run_id"]))["status"] == "interrupted"
    assert (await anna.sdk.threads.get(thread_id))["status"] == "idle"


async def test_an_interrupting_run_on_an_idle_thread_does_not_interrupt_itself(anna: Caller):
    thread_ids = [await anna.thread() for _ in range(10)]
    for thread_id in thread_ids:
        await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.instant()[1]), multitask_strategy="interrupt")
    for thread_id in thread_ids:
        (run,) = await anna.sdk.runs.list(thread_id)
        await anna.sdk.runs.join(thread_id, run["run_id"])
        assert (await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] == "success"


async def test_of_many_runs_that_interrupt_each_other_the_last_one_stays_and_no_word_is_lost(
    anna: Caller, model: ScriptedModel
):
    thread_id = await anna.thread()
    body = asks(scripts.gated("last")[1], multitask_strategy="interrupt")
    answers = await asyncio.gather(*[anna.post(f"/threads/{thread_id}/runs", body) for _ in range(10)])
    assert [answer.status_code for answer in answers] == [200] * 10
    model.open_gate("last")
    newest, *others = await anna.sdk.runs.list(thread_id)
    values = await anna.sdk.runs.join(thread_id, newest["run_id"])
    assert [message["type"] for message in values["messages"]].count("human") == 10
    assert (await anna.sdk.runs.get(thread_id, newest["run_id"]))["status"] == "success"
    statuses = [(await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] for run in others]
    assert statuses == ["interrupted"] * 9
    assert (await anna.sdk.threads.get(thread_id))["status"] == "idle"


async def test_of_many_runs_that_may_not_wait_exactly_one_is_taken(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    body = asks(scripts.gated("storm")[1], multitask_strategy="reject")
    answers = await asyncio.gather(*[anna.post(f"/threads/{thread_id}/runs", body) for _ in range(20)])
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    model.open_gate("storm")
    await anna.sdk.runs.join(thread_id, (await anna.sdk.runs.list(thread_id))[0]["run_id"])


async def test_a_missing_thread_is_made_only_when_asked_for(anna: Caller):
    thread_id, body = str(uuid4()), said(scripts.says("Made.")[1])
    with pytest.raises(NotFoundError):
        await anna.sdk.runs.create(thread_id, LEAD, input=body)
    run = await anna.sdk.runs.create(thread_id, LEAD, input=body, if_not_exists="create")
    assert run["thread_id"] == thread_id
    assert contents(await anna.sdk.runs.join(thread_id, run["run_id"]))[-1] == "Made."
    await anna.sdk.runs.wait(thread_id, LEAD, input=body, if_not_exists="create")
    assert len(await anna.sdk.runs.list(thread_id)) == 2


async def test_a_cancelled_run_ends_interrupted_and_its_join_gives_the_values_so_far(
    anna: Caller, model: ScriptedModel
):
    thread_id = await anna.thread()
    script_id, prompt = scripts.hanging()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    answer = await anna.post(f"/threads/{thread_id}/runs/{run['run_id']}/cancel?wait=0&action=interrupt")
    assert (answer.status_code, answer.content) == (202, b"")
    assert contents(await anna.sdk.runs.join(thread_id, run["run_id"]))[0] == prompt
    assert (await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"
    with pytest.raises(NotFoundError, match="already ended"):
        await anna.sdk.runs.cancel(thread_id, run["run_id"])


async def test_a_cancel_that_waits_answers_when_the_run_has_ended(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    script_id, prompt = scripts.hanging()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    answer = await anna.post(f"/threads/{thread_id}/runs/{run['run_id']}/cancel?wait=1")
    assert answer.status_code == 200
    assert answer.headers["location"] == f"/threads/{thread_id}/runs/{run['run_id']}/join"
    assert contents(answer.json())[0] == prompt
    assert (await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"


async def test_a_run_that_waits_its_turn_can_be_cancelled(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    first = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.gated("waits")[1]))
    second = await anna.sdk.runs.create(thread_id, LEAD, input=said("never said"))
    await anna.sdk.runs.cancel(thread_id, second["run_id"], wait=True)
    model.open_gate("waits")
    values = await anna.sdk.runs.join(thread_id, first["run_id"])
    assert (await anna.sdk.runs.get(thread_id, second["run_id"]))["status"] == "interrupted"
    assert "never said" not in contents(values)
    assert (await anna.sdk.threads.get(thread_id))["status"] == "idle"


async def test_a_failed_run_is_told_by_wait_join_run_and_thread(anna: Caller):
    thread_id, prompt = await anna.thread(), scripts.flaky([500] * 9)[1]
    with pytest.raises(Exception, match=r"^model_server_error: "):
        await anna.sdk.runs.wait(thread_id, LEAD, input=said(prompt))
    body = await anna.sdk.runs.wait(thread_id, LEAD, input=said(prompt), raise_error=False)
    assert body["__error__"]["error"] == "model_server_error"
    run = (await anna.sdk.runs.list(thread_id))[0]
    assert (run["status"], run["error"]) == ("error", body["__error__"])
    assert await anna.sdk.runs.join(thread_id, run["run_id"]) == body
    thread = await anna.sdk.threads.get(thread_id)
    assert (thread["status"], thread["error"]) == ("error", body["__error__"])
    assert contents(thread["values"])[0] == prompt
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Better.")[1]))
    assert contents(values)[-1] == "Better."


async def test_a_thread_is_made_with_its_id_and_metadata_once(anna: Caller):
    thread_id = str(uuid4())
    thread = await anna.sdk.threads.create(thread_id=thread_id, metadata={"color": "blue"}, graph_id="lead_agent")
    assert (thread["thread_id"], thread["status"], thread["values"]) == (thread_id, "idle", None)
    assert thread["metadata"] == {"color": "blue", "graph_id": "lead_agent"}
    with pytest.raises(ConflictError):
        await anna.sdk.threads.create(thread_id=thread_id)
    again = await anna.sdk.threads.create(thread_id=thread_id, metadata={"color": "red"}, if_exists="do_nothing")
    assert again["metadata"]["color"] == "blue"


async def test_headers_say_where_the_run_is_below_the_mount(anna: Caller):
    thread_id, seen = await anna.thread(), []
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.instant()[1]), on_run_created=seen.append)
    run_id = seen[0]["run_id"]
    assert seen == [{"run_id": run_id, "thread_id": thread_id}]
    place = f"/threads/{thread_id}/runs/{run_id}"
    created = await anna.post(f"/threads/{thread_id}/runs", asks(scripts.instant()[1]))
    assert created.headers["content-location"] == f"/threads/{thread_id}/runs/{created.json()['run_id']}"
    for path, location in ((f"{place}/stream", f"{place}/stream"), (f"{place}/join", f"{place}/join")):
        answer = await anna.http.get(path)
        assert (answer.headers["location"], answer.headers["content-location"]) == (location, place)
    assert (await anna.http.get(place)).json()["run_id"] == run_id


async def test_a_program_cannot_write_what_the_server_notes_on_a_run(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    forged = {"allowed_subagents": ["bash", "secret"], "clamped": {"x": [1, 2]}, "own": 1}
    run = await anna.sdk.runs.create(
        thread_id, LEAD, input=said(scripts.gated("forged")[1]), metadata=forged, context={"max_total_subagents": 99}
    )
    assert run["metadata"] == {"own": 1, "clamped": {"max_total_subagents": [99, 50]}}
    model.open_gate("forged")
    await anna.sdk.runs.join(thread_id, run["run_id"])
    ended = await anna.sdk.runs.get(thread_id, run["run_id"])
    assert "secret" not in ended["metadata"]["allowed_subagents"]


async def test_a_run_nobody_knows_is_not_found_before_any_stream_begins(anna: Caller):
    thread_id = await anna.thread()
    for call in (anna.sdk.runs.get, anna.sdk.runs.cancel):
        with pytest.raises(NotFoundError):
            await call(thread_id, unknown_id())
    for path in ("join", "stream"):
        answer = await anna.http.get(f"/threads/{thread_id}/runs/{unknown_id()}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
