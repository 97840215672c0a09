"""A cancel reaches the model call, the tool and the children, and keeps the work that was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runs import services
from runs.event_types import EventType
from runs.lifecycle import Cancel, commit_one
from runs.lifecycle.claims import claim
from runs.models import Run
from runs.statuses import ErrorCode, RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel


def went_away(model: ScriptedModel, script_id: str) -> bool:
    return model.calls_of(script_id)[-1].disconnected_at is not None


def test_a_cancel_closes_the_model_connection_and_keeps_what_had_come(house: House, model: ScriptedModel):
    script_id, prompt = scripts.script({"tokens": 9, "gate": "never", "gate_after": 4})
    run = house.ask(prompt)
    with Worker():
        house.until(lambda: house.events(run, EventType.DELTA))
        assert services.cancel_run(run_id=run.pk, by="ada")
        (ended,) = house.until_ended(run)
        model.wait_for(lambda model: went_away(model, script_id))
    assert (ended.status, ended.error_code, ended.cancelled_by) == (RunStatus.CANCELLED, ErrorCode.CANCELLED, "ada")
    assert house.messages(run)[-1]["partial"] is True
    assert house.said(run) == "t0 t1 t2 t3 "
    assert not services.cancel_run(run_id=run.pk, by="bob")
    again = house.answer(scripts.says("Here again.")[1], thread=run.thread)
    assert house.said(again) == "Here again."


def test_a_cancel_reaches_the_children_and_their_connections(house: House, model: ScriptedModel):
    children = [scripts.gated("never") for _ in range(3)]
    run = house.ask(scripts.delegate_to(children)[1])
    with Worker():
        house.until_calls(*(script_id for script_id, _ in children))
        services.cancel_run(run_id=run.pk, by="ada")
        house.until_ended(run, *house.children(run))
        model.wait_for(lambda model: all(went_away(model, script_id) for script_id, _ in children))
    assert house.again(run).status == RunStatus.CANCELLED
    assert [(c.status, c.cancelled_by) for c in house.children(run)] == [("cancelled", "parent")] * 3
    assert len(house.results(run)) == 3
    again = house.answer(scripts.instant()[1], thread=run.thread)
    assert again.status == RunStatus.SUCCESS


def test_a_cancel_reaches_children_that_no_worker_has_taken_yet(house: House):
    children = [scripts.gated("never") for _ in range(3)]
    run = house.ask(scripts.delegate_to(children)[1])
    with Worker(slots=1):
        house.until_calls(children[0][0])
        services.cancel_run(run_id=run.pk, by="ada")
        house.until_ended(run, *house.children(run))
    waited = house.children(run)[1:]
    assert [(child.status, child.attempt) for child in waited] == [("cancelled", 0)] * 2


def test_a_cancelled_child_leaves_the_lead_at_work(house: House, model: ScriptedModel):
    slow, quick = scripts.says("Half of it", gate="never", gate_after=2), scripts.instant()
    run = house.ask(scripts.delegate_to([slow, quick])[1])
    with Worker():
        house.until_calls(slow[0])
        child = house.children(run)[0]
        house.until(lambda: house.events(child, EventType.DELTA))
        services.cancel_run(run_id=child.pk, by="ada")
        house.until_ended(run)
    assert house.again(run).status == RunStatus.SUCCESS
    result = next(r for r in house.results(run) if r["artifact"]["child_run_id"] == str(child.pk))
    assert result["artifact"]["subagent_status"] == "cancelled"
    assert "Cancelled by ada" in str(result["content"])
    assert "Half of" in str(result["content"])


def test_a_cancel_ends_the_processes_of_a_tool(house: House):
    house.configure(sandbox={"provider": "local", "allow_host_bash": True})
    command = "echo $$ > pid; mkfifo never; cat never; touch after"
    run = house.ask(scripts.tool_then("bash", {"command": command})[1])
    with Worker():
        house.until(lambda: house.file(run, "pid").exists() and house.file(run, "pid").read_text().strip())
        services.cancel_run(run_id=run.pk, by="ada")
        house.until_ended(run)
    from tests.site.processes import alive, eventually

    assert eventually(lambda: not alive(int(house.file(run, "pid").read_text())))
    assert not house.file(run, "after").exists()
    (result,) = house.results(run)
    assert result["status"] == "error"


def test_a_cancel_between_claim_and_registration_is_not_lost(house: House):
    """The row is running and flagged before the worker has heard of either."""
    run = house.ask(scripts.gated("never")[1])
    with Worker() as worker:
        house.until_status(run, RunStatus.RUNNING)
        worker.lose()
    house.let_leases_lapse()
    claims = claim(free=9, most=9, workers=1, worker="gone", lease_seconds=8, max_attempts=3)
    assert [claimed.run.pk for claimed in claims.runs] == [run.pk]
    commit_one(Cancel(run_id=run.pk, lock_threads=(run.thread_id,), by="ada"))
    house.let_leases_lapse()
    house.work()
    assert house.again(run).status == RunStatus.CANCELLED


def test_cancels_that_race_with_the_claim_all_arrive(house: House):
    runs = [house.ask(scripts.gated("never")[1]) for _ in range(20)]
    with Worker(lease_seconds=60) as worker:
        for run in runs:
            worker.wake()
            services.cancel_run(run_id=run.pk, by="ada")
        house.until_ended(*runs)
    assert {house.again(run).status for run in runs} == {RunStatus.CANCELLED}


def test_send_now_interrupts_and_keeps_the_results_of_finished_children(house: House, model: ScriptedModel):
    done, slow = scripts.says("The first part."), scripts.gated("never")
    run = house.ask(scripts.delegate_to([done, slow])[1])
    waiting = house.ask(scripts.says("On it.")[1], thread=run.thread)
    with Worker():
        house.until_calls(slow[0])
        house.until(lambda: house.children(run)[0].status == RunStatus.SUCCESS)
        house.until(lambda: house.results(run))
        assert services.send_now(run_id=waiting.pk, by="ada")
        house.until_ended(run, waiting, *house.children(run))
    assert (house.again(run).status, house.again(run).error_code) == (RunStatus.INTERRUPTED, ErrorCode.SUPERSEDED)
    assert [child.status for child in house.children(run)] == ["success", "cancelled"]
    assert house.again(waiting).status == RunStatus.SUCCESS
    texts = [str(result["content"]) for result in house.results(run)]
    assert texts[0] == "The first part."
    assert texts[1].startswith("Not answered")
    assert house.said(waiting) == "On it."


def test_a_queued_message_gets_its_turn_when_the_one_before_has_ended(house: House, model: ScriptedModel):
    first = house.ask(scripts.gated("first")[1])
    second = house.ask(scripts.says("Second answer.")[1], thread=first.thread)
    third = house.ask(scripts.says("Third answer.")[1], thread=first.thread)
    with Worker():
        house.until_status(first, RunStatus.RUNNING)
        assert [house.again(run).status for run in (second, third)] == ["pending", "pending"]
        model.open_gate("first")
        house.until_ended(first, second, third)
    texts = [str(message["content"]) for message in house.messages(first) if message["type"] == "ai"]
    assert texts[1:] == ["Second answer.", "Third answer."]


@pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.INTERRUPTED])
def test_a_run_that_is_handed_over_while_it_is_being_stopped_ends_stopped(house: House, status: RunStatus):
    run = house.ask(scripts.gated("never")[1])
    with Worker() as worker:
        house.until_status(run, RunStatus.RUNNING)
        worker.lose()
    services.cancel_run(run_id=run.pk, by="ada", status=status)
    assert house.again(run).status == RunStatus.RUNNING
    house.let_leases_lapse()
    house.work()
    assert house.again(run).status == status
    assert Run.objects.get(pk=run.pk).cancelled_by == "ada"
