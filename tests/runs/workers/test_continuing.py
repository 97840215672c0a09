"""A run whose worker stops or is lost goes on elsewhere from its transcript, and repeats nothing that was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from runs import services
from runs.event_types import EventType
from runs.statuses import ErrorCode, RunStatus
from runs.worker.executor import UNKNOWN_OUTCOME
from tests.runs.workers.house import Worker
from tests.scripted_model import Reply, scripts

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from runs.models import Run
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel


def handed_over(house: House, worker: Worker) -> None:
    worker.stop()


def lost(house: House, worker: Worker) -> None:
    worker.lose()
    house.let_leases_lapse()


ENDS = pytest.mark.parametrize("end", [handed_over, lost])


@ENDS
def test_a_reply_under_way_is_asked_for_again(house: House, model: ScriptedModel, end: Callable[..., None]):
    script_id, prompt = scripts.script({"tokens": 6, "gate": "go", "gate_after": 3})
    run = house.ask(prompt)
    with Worker(name="first") as first:
        house.until(lambda: house.events(run, EventType.DELTA))
        end(house, first)
        model.wait_for(lambda model: model.calls_of(script_id)[0].disconnected_at is not None)
    model.open_gate("go")
    with Worker(name="second"):
        (ended,) = house.until_ended(run)
    assert (ended.status, ended.worker) == (RunStatus.SUCCESS, "second")
    assert house.said(run) == "t0 t1 t2 t3 t4 t5 "
    assert [message["type"] for message in house.messages(run)] == ["human", "ai"]


@ENDS
def test_a_tool_call_that_was_done_is_never_repeated(house: House, model: ScriptedModel, end: Callable[..., None]):
    script_id, prompt = scripts.append_line("log.txt", "once", gate="go")
    run = house.ask(prompt)
    with Worker() as first:
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 2)
        end(house, first)
    model.open_gate("go")
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    assert house.file(run, "log.txt").read_text() == "once\n"
    assert model.calls_of(script_id)[-1].messages == model.calls_of(script_id)[1].messages


@ENDS
def test_a_tool_call_in_flight_is_answered_with_an_unknown_outcome(house: House, end: Callable[..., None]):
    house.configure(sandbox={"provider": "local", "allow_host_bash": True})
    command = "echo once >> log.txt; mkfifo never; cat never"
    run = house.ask(scripts.tool_then("bash", {"command": command}, answer={"text": "I looked."})[1])
    with Worker() as first:
        house.until(house.file(run, "never").exists)
        end(house, first)
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    (result,) = house.results(run)
    assert (result["content"], result["status"]) == (UNKNOWN_OUTCOME, "error")
    assert house.file(run, "log.txt").read_text() == "once\n"
    assert house.said(run) == "I looked."


@ENDS
def test_a_lead_finds_its_running_children_again(house: House, model: ScriptedModel, end: Callable[..., None]):
    children = [scripts.append_line(f"{n}.txt", "once", gate="go") for n in range(3)]
    run = house.ask(scripts.delegate_to(children)[1])
    with Worker(name="first") as first:
        model.wait_for(lambda model: all(len(model.calls_of(one)) == 2 for one, _ in children))
        end(house, first)
    model.open_gate("go")
    with Worker(name="second"):
        (ended,) = house.until_ended(run)
    assert ended.status == RunStatus.SUCCESS
    assert [child.status for child in house.children(run)] == ["success"] * 3
    assert len(house.events(run, EventType.TASK_CREATED)) == 3
    assert {result["artifact"]["subagent_status"] for result in house.results(run)} == {"completed"}
    assert [house.file(run, f"{n}.txt").read_text() for n in range(3)] == ["once\n"] * 3


def test_children_that_ended_while_their_lead_had_no_worker_are_found_ended(house: House):
    run, children = _abandoned_lead(house)
    assert [(child.status, child.worker) for child in children] == [("success", "others")] * 3
    assert house.results(run) == []
    house.let_leases_lapse()
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    assert {r["artifact"]["child_run_id"] for r in house.results(run)} == {str(child.pk) for child in children}


def test_a_child_is_found_although_its_definition_is_gone_by_now(house: House):
    house.manage("scout")
    run, (child,) = _abandoned_lead(house, subagent="scout", count=1)
    house.manage("scout", enabled=False)
    house.let_leases_lapse()
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    (result,) = house.results(run)
    assert result["artifact"]["child_run_id"] == str(child.pk)
    assert result["artifact"]["subagent_status"] == "completed"


def _abandoned_lead(house: House, *, subagent: str = "general-purpose", count: int = 3) -> tuple[Run, list[Run]]:
    """A lead whose worker was lost while its children ran; others executed those to their end, nobody the lead."""
    children = [scripts.says("Found.", gate="found") for _ in range(count)]
    run = house.ask(scripts.delegate_to(children, subagent)[1])
    with Worker(name="first") as first:
        house.until_calls(*(script_id for script_id, _ in children))
        first.lose()
    house.let_leases_lapse(*house.children(run))
    house.model.open_gate("found")
    with Worker(name="others"):
        house.until_ended(*house.children(run))
    return run, house.children(run)


def test_a_child_that_another_worker_takes_over_is_awaited_there(house: House, model: ScriptedModel):
    child_script = scripts.gated("go")
    run = house.ask(scripts.delegate_to([child_script])[1])
    with Worker(name="first", slots=1, lease_seconds=2) as first:  # the child has the slot: it draws nothing more
        house.until_calls(child_script[0])
        (child,) = house.children(run)
        house.let_leases_lapse(child)
        with Worker(name="second", slots=1):
            house.until(lambda: house.again(child).worker == "second")
            house.until(lambda: first.host.slots.free == 1)
            house.until(lambda: house.again(run).waiting_for == "children")
            model.open_gate("go")
            house.until_ended(run)
    assert (house.again(run).worker, house.again(run).attempt) == ("first", 1)
    (result,) = house.results(run)
    assert result["artifact"]["subagent_status"] == "completed"


@pytest.mark.postgres
def test_broken_database_connections_cost_at_most_a_lease(house: House, model: ScriptedModel):
    children = [scripts.append_line(f"{n}.txt", "once", gate="go") for n in range(3)]
    run = house.ask(scripts.delegate_to(children)[1])
    with Worker(lease_seconds=2):
        model.wait_for(lambda model: all(len(model.calls_of(one)) == 2 for one, _ in children))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        model.open_gate("go")
        house.until_ended(run)
    assert house.again(run).status == RunStatus.SUCCESS
    assert [house.file(run, f"{n}.txt").read_text() for n in range(3)] == ["once\n"] * 3
    assert {result["artifact"]["subagent_status"] for result in house.results(run)} == {"completed"}


@ENDS
def test_a_continued_lead_keeps_the_count_of_its_children(house: House, model: ScriptedModel, end: Callable[..., None]):
    call = scripts.task_call("part", scripts.instant()[1])
    lead_id, prompt = scripts.script({"calls": [call]}, {"calls": [call], "gate": "go"}, {})
    run = house.ask(prompt, max_total_subagents=1)
    with Worker() as first:
        model.wait_for(lambda model: len(model.calls_of(lead_id)) == 2)
        end(house, first)
    model.open_gate("go")
    house.work()
    assert len(house.children(run)) == 1
    assert house.again(run).status == RunStatus.SUCCESS
    assert "task" not in model.calls_of(lead_id)[-1].tool_names


def test_a_continued_run_keeps_its_turns_and_tokens(house: House, model: ScriptedModel):
    house.configure(runs={"max_turns": 3}, subagents={"token_budget": {"max_tokens": 1000}})
    look = {"calls": [scripts.call("ls")], "text": "So far.", "usage": [100, 20]}
    script_id, prompt = scripts.script(look, {**look, "gate": "go"}, look)
    run = house.ask(prompt)
    with Worker() as first:
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 2)
        first.stop()
    model.open_gate("go")
    house.work()
    run = house.again(run)
    assert (run.stop_reason, run.model_calls, run.total_tokens) == ("turn_capped", 3, 360)


def test_a_hand_over_is_nobodys_fault_and_counts_as_no_lost_worker(house: House, model: ScriptedModel):
    run = house.ask(scripts.gated("go")[1])
    for _ in range(4):
        with Worker() as worker:
            house.until_status(run, RunStatus.RUNNING)
            worker.stop()
            assert house.again(run).status == RunStatus.PENDING
    model.open_gate("go")
    house.work()
    run = house.again(run)
    assert (run.status, run.attempt, run.lost_workers) == (RunStatus.SUCCESS, 5, 0)


def test_a_run_that_keeps_losing_its_worker_is_given_up_and_its_thread_stays_usable(house: House):
    run = house.ask(scripts.tool_then("ls", {}, answer={"hang": True})[1])
    for attempt in (1, 2, 3):
        with Worker(name="fragile") as worker:
            house.until(lambda attempt=attempt: house.again(run).attempt == attempt)
            worker.lose()
        house.let_leases_lapse()
    house.work()
    run = house.again(run)
    assert (run.status, run.error_code, run.attempt) == (RunStatus.ERROR, ErrorCode.WORKER_LOST, 3)
    assert "fragile" in run.error
    again = house.answer(scripts.instant()[1], thread=run.thread)
    assert again.status == RunStatus.SUCCESS


def test_a_child_that_keeps_losing_its_worker_is_a_failed_delegation(house: House):
    run = house.ask(scripts.delegate_to([scripts.hanging()])[1])
    with Worker(name="fragile") as worker:
        house.until(lambda: [child.attempt for child in house.children(run)] == [1])
        worker.lose()
    (child,) = house.children(run)
    for attempt in (2, 3):
        house.let_leases_lapse(child)
        with Worker(name="fragile") as worker:
            house.until(lambda attempt=attempt: house.again(child).attempt == attempt)
            worker.lose()
    house.let_leases_lapse()
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    (result,) = house.results(run)
    assert result["artifact"]["subagent_status"] == "failed"
    assert "worker" in str(result["content"])


def test_a_worker_that_draws_its_own_lapsed_run_goes_on_with_one_execution(house: House, model: ScriptedModel):
    """As after a stall longer than the lease, when nobody else was there to take the run."""
    script_id, prompt = scripts.append_line("log.txt", "once", gate="go")
    run = house.ask(prompt)
    with Worker(name="stalled", lease_seconds=60) as worker:
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 2)
        house.let_leases_lapse()
        worker.wake()
        house.until(lambda: house.again(run).attempt == 2)
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 3)
        house.until(lambda: worker.host.slots.free == 99)
        assert worker.host.holds(run.pk)
        worker.wake()
        model.open_gate("go")
        house.until_ended(run)
        house.until(lambda: worker.host.slots.free == 100)
    assert (house.again(run).status, house.again(run).attempt) == (RunStatus.SUCCESS, 2)
    assert house.file(run, "log.txt").read_text() == "once\n"


def test_a_zombie_writes_nothing_once_another_has_its_run(house: House, model: ScriptedModel):
    model.replies([Reply(text="From the zombie.", gate="zombie"), Reply(text="From the heir.", gate="heir")])
    run = house.ask("Who answers?")
    with Worker(name="zombie", slots=1, lease_seconds=600) as zombie:  # its only slot is taken: it draws nothing
        model.wait_for(lambda model: len(model.requests) == 1)
        house.let_leases_lapse()
        with Worker(name="heir"):
            model.wait_for(lambda model: len(model.requests) == 2)
            before = house.events(run)
            model.open_gate("zombie")
            house.until(lambda: zombie.host.slots.free == 1)
            assert house.events(run) == before
            assert house.again(run).status == RunStatus.RUNNING
            model.open_gate("heir")
            house.until_ended(run)
    ended = house.again(run)
    assert (ended.status, ended.worker, ended.model_calls) == (RunStatus.SUCCESS, "heir", 1)
    assert [message["content"] for message in house.messages(run)] == ["Who answers?", "From the heir."]


def test_a_handed_over_run_that_is_cancelled_before_anybody_takes_it_leaves_a_usable_thread(house: House):
    house.configure(sandbox={"provider": "local", "allow_host_bash": True})
    run = house.ask(scripts.tool_then("bash", {"command": "mkfifo never; cat never"})[1])
    with Worker() as first:
        house.until(house.file(run, "never").exists)
        first.stop()
    assert services.cancel_run(run_id=run.pk, by="ada")
    assert house.again(run).status == RunStatus.CANCELLED
    again = house.answer(scripts.instant()[1], thread=run.thread)
    assert again.status == RunStatus.SUCCESS


def test_a_thread_of_five_hundred_messages_goes_on(house: House, model: ScriptedModel):
    thread = services.create_thread(owner=house.owner)
    _write_long_history(house, thread.pk, pairs=250)
    script_id, prompt = scripts.append_line("log.txt", "once", gate="go")
    run = house.ask(prompt, thread=thread)
    with Worker() as first:
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 2)
        first.stop()
    model.open_gate("go")
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    assert model.calls_of(script_id)[-1].message_count == 1 + 500 + 3
    assert house.file(run, "log.txt").read_text() == "once\n"


def _write_long_history(house: House, thread_id: UUID, *, pairs: int) -> None:
    from runs.ledger import Ledger
    from runs.models import new_id

    earlier = house.answer("Hello", thread=services.Thread.objects.get(pk=thread_id))
    assert earlier.status == RunStatus.SUCCESS
    with Ledger(thread_ids=[thread_id]) as ledger:
        for number in range(pairs - 1):
            pair = [
                {"type": "human", "id": str(new_id()), "content": f"Question {number}"},
                {"type": "ai", "id": str(new_id()), "content": f"Answer {number}"},
            ]
            ledger.append(ledger.threads[thread_id], earlier.pk, pair)
