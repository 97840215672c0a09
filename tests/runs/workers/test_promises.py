"""What a lead is promised of its subagents: exact results, whole deadlines, turns and budgets of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from runs import services
from runs.event_types import EventType
from runs.statuses import ErrorCode, RunStatus
from tests.patience import PATIENCE_SECONDS
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts
from tests.site.processes import alive, eventually

if TYPE_CHECKING:
    from runs.models import Run
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel

LOOK = scripts.call("ls")
HANG = "echo $$ > pid; mkfifo never; cat never"


@pytest.fixture
def bash_house(house: House) -> House:
    """Subagents get one second and may run commands on this machine."""
    house.configure(
        sandbox={"provider": "local", "allow_host_bash": True},
        subagents={"agents": {"general-purpose": {"timeout_seconds": 1}}},
    )
    return house


def test_a_tool_that_never_returns_ends_with_its_run_and_says_how_far_it_had_come(bash_house: House):
    house = bash_house
    child = scripts.script(
        {"calls": [LOOK], "text": "Finding A."},
        {"calls": [scripts.call("bash", command=HANG)], "text": "Finding B."},
    )
    lead = house.ask(scripts.delegate_to([child])[1])
    with Worker() as worker:
        (ended,) = house.until_ended(lead)
        house.until(lambda: worker.host.slots.free == 100)
    assert ended.status == RunStatus.SUCCESS
    (run,) = house.children(lead)
    assert run.status == RunStatus.TIMEOUT
    assert run.ended_at is not None
    assert run.started_at is not None
    assert (run.ended_at - run.started_at).total_seconds() < PATIENCE_SECONDS
    assert eventually(lambda: not alive(int(house.file(lead, "pid").read_text())))
    (result,) = house.results(lead)
    assert result["artifact"]["subagent_status"] == "timed_out"
    words = str(result["content"])
    assert "Finding B." in words
    assert "It had made 2 model calls in 1 s, while these tools were at work: bash." in words


def test_all_children_that_hang_end_with_the_deadline_of_their_lead(house: House, model: ScriptedModel):
    house.configure(runs={"timeout_seconds": 1})
    children = [scripts.gated("never") for _ in range(3)]
    lead = house.answer(scripts.delegate_to(children)[1])
    assert lead.status == RunStatus.TIMEOUT
    assert [child.status for child in house.children(lead)] == [RunStatus.CANCELLED] * 3
    assert lead.ended_at is not None
    assert lead.started_at is not None
    assert (lead.ended_at - lead.started_at).total_seconds() < PATIENCE_SECONDS
    assert all(model.calls_of(child_id)[0].disconnected_at is not None for child_id, _prompt in children)


def test_the_result_is_the_last_message_and_nothing_but_it_wherever_it_is_read(house: House):
    child = scripts.script(*[{"calls": [LOOK], "text": f"Step {number}."} for number in range(3)], {"text": "DONE-42"})
    lead = house.answer(scripts.delegate_to([child])[1])
    (run,) = house.children(lead)
    (result,) = house.results(lead)
    (told,) = house.events(lead, EventType.TASK_ENDED)
    assert result["content"] == told["result"] == house.said(run) == "DONE-42"
    assert result["artifact"]["result_brief"] == "DONE-42"
    assert [message["content"] for message in house.messages(run) if message["type"] == "ai"][:3] == [
        "Step 0.",
        "Step 1.",
        "Step 2.",
    ]


def test_each_child_has_turns_of_its_own_whatever_its_lead_and_siblings_have_used(house: House):
    house.configure(runs={"max_turns": 6}, subagents={"agents": {"general-purpose": {"max_turns": 5}}})

    def looks(who: object) -> list[dict[str, object]]:
        return [{"calls": [scripts.call("ls", path=f"{who}/{turn}")]} for turn in range(4)]

    calls = [scripts.task_call("part", scripts.script(*looks(child), {})[1]) for child in range(3)]
    lead = house.answer(scripts.script(*looks("lead"), {"calls": calls}, {})[1])
    assert (lead.status, lead.stop_reason, lead.model_calls) == (RunStatus.SUCCESS, "", 6)
    ended = [(run.status, run.stop_reason, run.model_calls) for run in house.children(lead)]
    assert ended == [(RunStatus.SUCCESS, "", 5)] * 3


def test_a_budget_that_is_switched_off_caps_nobody_and_one_that_is_on_caps_both(house: House):
    def answered(enabled: bool) -> tuple[Run, Run]:
        house.configure(subagents={"token_budget": {"enabled": enabled, "max_tokens": 1_000}})
        child = scripts.script({"calls": [LOOK], "text": "On it.", "usage": [4_000_000, 1_000_000]}, {"text": "Found."})
        calls = [scripts.task_call("part", child[1])]
        lead = scripts.script(
            {"calls": calls, "usage": [10, 5]},
            {"calls": [LOOK], "text": "Nearly.", "usage": [4_000_000, 1_000_000]},
            {"text": "Done."},
        )
        run = house.answer(lead[1])
        (only,) = house.children(run)
        return run, only

    assert [run.stop_reason for run in answered(False)] == ["", ""]
    assert [run.stop_reason for run in answered(True)] == ["token_capped", "token_capped"]


def test_a_run_whose_usage_nobody_reported_counts_as_unknown_and_not_as_nothing(house: House):
    child_id, prompt = scripts.script({"tokens": 9, "gate": "never", "gate_after": 4})
    run = house.ask(prompt)
    with Worker():
        house.until_calls(child_id)
        house.until(lambda: house.events(run, EventType.DELTA))
        services.cancel_run(run_id=run.pk, by="ada")
        (ended,) = house.until_ended(run)
    assert ended.status == RunStatus.CANCELLED
    assert (ended.input_tokens, ended.output_tokens, ended.total_tokens) == (None, None, None)
    (told,) = house.events(run, EventType.RUN_ENDED)
    assert told.get("total_tokens") is None
    assert json.dumps(told)


def test_the_words_that_came_with_a_call_reach_the_lead_when_the_last_reply_is_blank(house: House):
    child = scripts.script({"calls": [LOOK], "text": "ANSWER"}, {"text": "  "})
    lead = house.answer(scripts.delegate_to([child])[1])
    assert lead.status == RunStatus.SUCCESS
    (run,) = house.children(lead)
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.NO_ANSWER)
    (result,) = house.results(lead)
    assert result["artifact"]["subagent_status"] == "failed"
    assert str(result["content"]).endswith("What it had written until then:\nANSWER")


def test_a_long_result_is_cut_once_and_says_so_once(house: House, model: ScriptedModel):
    text = "head " + "x" * 60_000 + " tail"
    child = scripts.says(text)
    lead_id, prompt = scripts.delegate_to([child])
    lead = house.answer(prompt)
    (run,) = house.children(lead)
    (result,) = house.results(lead)
    seen = str(result["content"])
    assert len(seen) < 25_000
    assert (seen.count("characters cut"), seen.count("This result was shortened")) == (1, 1)
    assert seen.startswith("head ")
    assert " tail" in seen
    assert house.said(run) == text
    (message,) = [one for one in model.calls_of(lead_id)[-1].messages if one["role"] == "tool"]
    assert message["content"] == seen
