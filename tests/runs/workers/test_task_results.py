"""Each `task` call gets exactly one result, with the facts of the delegation, whichever way it went."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from runs import services
from runs.statuses import RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from runs.models import Run
    from runs.transcript import WireMessage
    from tests.runs.workers.house import House

STATUSES = {"completed", "failed", "cancelled", "timed_out"}


def facts_by_call(house: House, run: Run) -> dict[str, dict[str, Any]]:
    """The facts of each `task` call of the run; one result for each, and nothing is left without."""
    messages = house.messages(run)
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or () if call["name"] == "task"]
    results: list[WireMessage] = [one for one in house.results(run) if one["name"] == "task"]
    assert sorted(result["tool_call_id"] for result in results) == sorted(calls)
    facts = {result["tool_call_id"]: result["artifact"] for result in results}
    assert {one["subagent_status"] for one in facts.values()} <= STATUSES
    return facts


def test_a_completed_delegation_names_its_child_model_usage_and_the_whole_text(house: House):
    text = "A long answer. " * 2_000
    run = house.answer(scripts.delegate_to([scripts.says(text, usage=[100, 20])])[1])
    (child,) = house.children(run)
    (facts,) = facts_by_call(house, run).values()
    brief = facts.pop("result_brief")
    assert facts == {
        "subagent_status": "completed",
        "subagent": "general-purpose",
        "child_run_id": str(child.pk),
        "child_thread_id": str(child.thread_id),
        "model": "scripted",
        "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
        "result_sha256": hashlib.sha256(text.strip().encode()).hexdigest(),
    }
    assert len(brief) <= 2_000
    (result,) = house.results(run)
    assert len(str(result["content"])) < 25_000
    assert house.said(child) == text


def test_usage_that_nobody_reported_is_absent(house: House):
    run = house.answer(scripts.delegate_to([scripts.says("Fine.", no_usage=True)])[1])
    (facts,) = facts_by_call(house, run).values()
    assert "usage" not in facts


def test_refused_above_the_limit_and_started_calls_have_one_result_each(house: House):
    good = [scripts.task_call(f"part {n}", scripts.instant()[1]) for n in range(4)]
    unknown = scripts.task_call("nobody", "Do it.", subagent="nobody")
    run = house.answer(scripts.script({"calls": [unknown, *good]}, {"text": "Done."})[1])
    facts = list(facts_by_call(house, run).values())
    assert sorted(one["subagent_status"] for one in facts) == ["completed"] * 3 + ["failed"] * 2
    assert sum("child_run_id" in one for one in facts) == len(house.children(run)) == 3
    assert all(one["error"] for one in facts if one["subagent_status"] == "failed")


@pytest.mark.parametrize(
    ("child", "status", "override"),
    [
        (scripts.flaky([401] * 9), "failed", {}),
        (scripts.says("Some way", gate="never", gate_after=1), "timed_out", {"timeout_seconds": 1}),
        (scripts.tool_loop("ls", {}), "failed", {}),
    ],
)
def test_a_child_that_did_not_complete_is_named_with_its_run(
    house: House, child: scripts.Scripted, status: str, override: dict[str, Any]
):
    house.configure(subagents={"agents": {"general-purpose": override}} if override else {})
    run = house.answer(scripts.delegate_to([child])[1])
    (started,) = house.children(run)
    (facts,) = facts_by_call(house, run).values()
    assert (facts["subagent_status"], facts["child_run_id"]) == (status, str(started.pk))
    assert facts["error"]
    assert "result_sha256" not in facts


def test_a_child_that_somebody_cancelled_is_cancelled_for_its_lead(house: House):
    slow, quick = scripts.gated("never"), scripts.instant()
    run = house.ask(scripts.delegate_to([slow, quick])[1])
    with Worker():
        house.until_calls(slow[0])
        house.until(lambda: [house.again(child).status for child in house.children(run)].count("running") == 1)
        waiting = next(child for child in house.children(run) if child.status == RunStatus.RUNNING)
        services.cancel_run(run_id=waiting.pk, by="ada")
        (ended,) = house.until_ended(run)
    assert ended.status == RunStatus.SUCCESS
    facts = {one["child_run_id"]: one for one in facts_by_call(house, run).values()}
    assert facts[str(waiting.pk)]["subagent_status"] == "cancelled"
    assert sorted(one["subagent_status"] for one in facts.values()) == ["cancelled", "completed"]


def test_the_calls_of_a_stopped_lead_name_the_children_they_had_started(house: House):
    slow = scripts.gated("never")
    run = house.ask(scripts.delegate_to([slow])[1])
    with Worker():
        house.until_calls(slow[0])
        services.cancel_run(run_id=run.pk, by="ada")
        house.until_ended(run, *house.children(run))
    (child,) = house.children(run)
    (facts,) = facts_by_call(house, run).values()
    assert facts["subagent_status"] == "cancelled"
    assert (facts["child_run_id"], facts["child_thread_id"]) == (str(child.pk), str(child.thread_id))


def test_the_calls_of_a_lead_that_ends_without_a_worker_do_so_too(house: House):
    slow = scripts.gated("never")
    run = house.ask(scripts.delegate_to([slow])[1])
    with Worker(name="first") as first:
        house.until_calls(slow[0])
        first.lose()
    house.let_leases_lapse()
    with Worker(name="second", max_attempts=1):
        house.until_ended(run, *house.children(run))
    (child,) = house.children(run)
    assert house.again(run).error_code == "worker_lost"
    (facts,) = facts_by_call(house, run).values()
    assert (facts["subagent_status"], facts["child_run_id"]) == ("cancelled", str(child.pk))
