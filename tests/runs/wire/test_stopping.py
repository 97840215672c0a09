"""Cancelling many runs, deleting runs, and runs that are due later."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError

from runs import clock, queue
from runs.models import Event, Message, Run, Thread
from tests.runs.wire.callers import asks, contents, followed, in_database, said, unknown_id
from tests.runs.wire.test_access import in_shape
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"


async def hanging(caller: Caller, model: ScriptedModel, thread_id: str) -> tuple[str, str]:
    """A run that works until it is stopped, and what it was asked."""
    script_id, prompt = scripts.hanging()
    run = await caller.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    return run["run_id"], prompt


async def status_of(caller: Caller, thread_id: str, run_id: str) -> str:
    return str((await caller.sdk.runs.get(thread_id, run_id))["status"])


async def test_named_runs_of_a_thread_are_cancelled(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    running, _prompt = await hanging(anna, model, thread_id)
    waits = (await anna.sdk.runs.create(thread_id, LEAD, input=said("x")))["run_id"]
    await anna.sdk.runs.cancel_many(thread_id=thread_id, run_ids=[running, waits, unknown_id()])
    for run_id in (running, waits):
        await anna.sdk.runs.join(thread_id, run_id)
        assert await status_of(anna, thread_id, run_id) == "interrupted"
    with pytest.raises(NotFoundError):
        await anna.sdk.runs.cancel_many(thread_id=thread_id, run_ids=[running, waits])


@pytest.mark.parametrize("status", ["pending", "running", "all"])
async def test_all_of_a_status_are_cancelled_and_nobody_elses(
    anna: Caller, bert: Caller, model: ScriptedModel, status: Any
):
    own, other = await anna.thread(), await bert.thread()
    running, _prompt = await hanging(anna, model, own)
    waits = (await anna.sdk.runs.create(own, LEAD, input=said(scripts.instant()[1])))["run_id"]
    others, _prompt = await hanging(bert, model, other)
    await anna.sdk.runs.cancel_many(status=status)
    reached = {"pending": [waits], "running": [running], "all": [running, waits]}[status]
    for run_id in reached:
        await anna.sdk.runs.join(own, run_id)
        assert await status_of(anna, own, run_id) == "interrupted"
    if status == "pending":
        assert await status_of(anna, own, running) == "running"
        await anna.sdk.runs.cancel(own, running)
    assert await status_of(bert, other, others) == "running"
    await bert.sdk.runs.cancel(other, others, wait=True)


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("thread_id", {}),
        ("thread_id", {"run_ids": [unknown_id()]}),
        ("run_ids", {"thread_id": unknown_id()}),
        ("run_ids", {"thread_id": unknown_id(), "run_ids": []}),
        ("run_ids", {"thread_id": unknown_id(), "run_ids": "x"}),
        ("run_ids[0]", {"thread_id": unknown_id(), "run_ids": ["x"]}),
        ("thread_id", {"thread_id": "x", "run_ids": [unknown_id()]}),
        ("status", {"status": "success"}),
        ("status", {"status": "all", "thread_id": unknown_id()}),
        ("status", {"status": "all", "run_ids": [unknown_id()]}),
    ],
)
async def test_a_wrong_choice_of_runs_is_named(anna: Caller, field: str, body: dict[str, Any]):
    assert in_shape(await anna.post("/runs/cancel", body), 422, "invalid")["metadata"]["field"] == field


async def test_somebody_elses_runs_are_not_found_among_many(anna: Caller, bert: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    run_id, _prompt = await hanging(anna, model, thread_id)
    body = {"thread_id": thread_id, "run_ids": [run_id]}
    in_shape(await bert.post("/runs/cancel", body), 404, "not_found")
    in_shape(await bert.post("/runs/cancel", {"status": "all"}), 404, "not_found")
    assert await status_of(anna, thread_id, run_id) == "running"
    await anna.sdk.runs.cancel(thread_id, run_id, wait=True)


async def test_a_run_is_deleted_while_it_works_and_nothing_of_it_is_written_afterwards(
    anna: Caller, model: ScriptedModel
):
    thread_id = await anna.thread()
    run_id, prompt = await hanging(anna, model, thread_id)
    follower = await followed(anna, f"/threads/{thread_id}/runs/{run_id}")
    following = (await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.says("Next.")[1])))["run_id"]
    assert (await anna.http.delete(f"/threads/{thread_id}/runs/{run_id}")).status_code == 204
    with pytest.raises(NotFoundError):
        await anna.sdk.runs.get(thread_id, run_id)
    values = await anna.sdk.runs.join(thread_id, following)
    assert (contents(values)[0], contents(values)[-1]) == (prompt, "Next.")
    assert (await follower)[-1].name == "end"
    assert (await anna.sdk.threads.get(thread_id))["status"] == "idle"

    def rows_of() -> tuple[int, int]:
        return (
            Message.objects.filter(thread_id=thread_id, run_id=run_id).exclude(data__contains='"human"').count(),
            Event.objects.filter(thread_id=thread_id, run_id=run_id).order_by("-seq").values_list("type", flat=True)[0]
            == "run.ended",
        )

    assert await in_database(rows_of) == (0, True)
    in_shape(await anna.http.delete(f"/threads/{thread_id}/runs/{run_id}"), 404, "not_found")


async def test_a_deleted_run_takes_what_it_delegated_with_it(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    child_id, child = scripts.hanging()
    _id, prompt = scripts.delegate_to([(child_id, child)])
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(child_id)))
    below = await in_database(lambda: list(Run.objects.filter(parent_id=run["run_id"]).values_list("pk", "thread_id")))
    ((child_run, child_thread),) = below
    in_shape(await anna.http.delete(f"/threads/{child_thread}/runs/{child_run}"), 409, "part_of_another")
    await anna.sdk.runs.delete(thread_id, run["run_id"])
    assert await in_database(Run.objects.filter(root_id=run["run_id"]).count) == 0
    assert await in_database(Thread.objects.filter(pk=child_thread).count) == 0
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Still whole.")[1]))
    assert contents(values)[-1] == "Still whole."


async def test_an_ended_run_is_deleted_and_its_words_stay(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Said.")[1]))
    (run,) = await anna.sdk.runs.list(thread_id)
    await anna.sdk.runs.delete(thread_id, run["run_id"])
    assert await anna.sdk.runs.list(thread_id) == []
    assert contents((await anna.sdk.threads.get(thread_id))["values"])[-1] == "Said."


async def test_a_run_is_pending_until_it_is_due_and_those_behind_it_wait(anna: Caller):
    thread_id = await anna.thread()
    late = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.says("Late.")[1]), after_seconds=3600)
    behind = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.says("Behind.")[1]))
    assert (await anna.sdk.threads.get(thread_id))["status"] == "busy"
    with pytest.raises(ConflictError):
        await anna.sdk.runs.create(thread_id, LEAD, input=said("no"), multitask_strategy="reject")

    def look() -> tuple[bool, bool]:
        """Whether a worker could take it now, and in an hour; the sweep in between changes nothing."""
        now = clock.now()
        queue.shorten_leases(now, longest_seconds=10)
        queue_id = Run.objects.get(pk=late["run_id"]).queue_id
        hour = now + timedelta(seconds=3601)
        return tuple(queue_id in {one.queue_id for one in queue.candidates(at)} for at in (now, hour))  # type: ignore[return-value]

    assert await in_database(look) == (False, True)
    assert [await status_of(anna, thread_id, run["run_id"]) for run in (late, behind)] == ["pending"] * 2

    def due() -> None:
        run = Run.objects.get(pk=late["run_id"])
        Run.objects.filter(pk=run.pk).update(due_at=clock.now())
        queue.release([run.queue_id or 0], clock.now())

    await in_database(due)
    assert contents(await anna.sdk.runs.join(thread_id, behind["run_id"]))[1::2] == ["Late.", "Behind."]


async def test_a_short_while_later_a_run_begins_by_itself(anna: Caller):
    thread_id = await anna.thread()
    body = said(scripts.says("Soon.")[1])
    run = await anna.sdk.runs.create(thread_id, LEAD, input=body, after_seconds=1)
    assert contents(await anna.sdk.runs.join(thread_id, run["run_id"]))[-1] == "Soon."
    row = await in_database(Run.objects.get, pk=run["run_id"])
    assert row.started_at >= row.due_at >= row.created_at + timedelta(seconds=1)


async def test_a_run_that_is_not_due_is_cancelled_or_interrupted_like_any_other(anna: Caller):
    thread_id = await anna.thread()
    first = await anna.sdk.runs.create(thread_id, LEAD, input=said("never"), after_seconds=3600)
    await anna.sdk.runs.cancel(thread_id, first["run_id"], wait=True)
    second = await anna.sdk.runs.create(thread_id, LEAD, input=said("kept"), after_seconds=3600)
    now = said(scripts.says("Now.")[1])
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=now, multitask_strategy="interrupt")
    assert "kept" in contents(values)
    assert contents(values)[-1] == "Now."
    assert [await status_of(anna, thread_id, run["run_id"]) for run in (first, second)] == ["interrupted"] * 2


async def test_a_deleted_run_leaves_its_worker_soon(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    script_id, prompt = scripts.hanging()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    await anna.sdk.runs.delete(thread_id, run["run_id"])

    await model.until(lambda seen: all(call.disconnected_at for call in seen.calls_of(script_id)))
    answer = await anna.post(f"/threads/{thread_id}/runs/wait", asks(scripts.says("On.")[1]))
    assert contents(answer.json())[-1] == "On."
