"""A delegation is checked again on the server at the moment of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.limits import limits_from_json
from runs.statuses import RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from runs.models import Run
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel


def lead_to(name: str, **step: object) -> tuple[str, str]:
    return scripts.script({"calls": [scripts.task_call("part", "Do it.", subagent=name)], **step}, {}, kind="lead")


def the_refusal(house: House, run: Run) -> str:
    """The one result of a call that started nothing; the run goes on to its answer."""
    assert run.status == RunStatus.SUCCESS
    assert house.children(run) == []
    (result,) = house.results(run)
    assert result["name"] == "task"
    assert "child_run_id" not in result["artifact"]
    return str(result["content"])


def test_a_name_outside_the_snapshot_is_refused_with_the_permitted_names(house: House):
    refusal = the_refusal(house, house.answer(lead_to("surveyor")[1]))
    assert "Nothing was started" in refusal
    assert "Permitted subagents: general-purpose." in refusal


def test_a_subagent_made_after_the_start_is_not_in_the_snapshot(house: House, model: ScriptedModel):
    lead_id, prompt = lead_to("scout", gate="made")
    run = house.ask(prompt)
    with Worker():
        house.until_calls(lead_id)
        house.manage("scout")
        model.open_gate("made")
        house.until_ended(run)
    refusal = the_refusal(house, house.again(run))
    assert "Permitted subagents: general-purpose." in refusal
    assert "switched off" not in refusal


def test_a_subagent_that_is_switched_off_after_the_start_is_refused(house: House, model: ScriptedModel):
    house.manage("scout")
    lead_id, prompt = lead_to("scout", gate="off")
    run = house.ask(prompt)
    with Worker():
        house.until_calls(lead_id)
        assert "scout" in model.requests[0].system_text
        house.manage("scout", enabled=False)
        model.open_gate("off")
        house.until_ended(run)
    run = house.again(run)
    assert "scout" in run.metadata["allowed_subagents"]
    refusal = the_refusal(house, run)
    assert "scout is not available: it has been switched off." in refusal
    assert refusal.endswith("Permitted subagents: general-purpose.")


def test_bash_is_refused_when_its_gate_has_closed(house: House, model: ScriptedModel):
    house.configure(sandbox={"provider": "local", "allow_host_bash": True})
    lead_id, prompt = lead_to("bash", gate="closed")
    run = house.ask(prompt)
    with Worker():
        house.until_calls(lead_id)
        house.configure()
        model.open_gate("closed")
        house.until_ended(run)
    run = house.again(run)
    assert "bash" in run.metadata["allowed_subagents"]
    refusal = the_refusal(house, run)
    assert "bash cannot run safely" in refusal
    assert "Permitted subagents: general-purpose." in refusal


def test_the_definition_is_taken_as_it_is_at_the_call(house: House, model: ScriptedModel):
    house.manage("scout", system_prompt="The old words.")
    lead_id, prompt = lead_to("scout", gate="changed")
    run = house.ask(prompt)
    with Worker():
        house.until_calls(lead_id)
        house.manage("scout", system_prompt="The new {words}.", tools=["ls"])
        model.open_gate("changed")
        house.until_ended(run)
    (child,) = house.children(run)
    assert child.definition["system_prompt"] == "The new {words}."
    assert child.definition["version"] == "2"
    child_call = next(call for call in model.requests if call.user_text == "Do it.")
    assert "The new {words}." in child_call.system_text
    assert child_call.tool_names == ("ls",)


@pytest.mark.parametrize("spelling", [" Scout ", "`scout`", '"SCOUT"', '["scout"]'])
def test_a_name_is_matched_as_models_spell_it(house: House, spelling: str):
    house.manage("scout")
    run = house.answer(lead_to(spelling)[1])
    (child,) = house.children(run)
    assert child.agent == "scout"


def test_a_subagent_whose_model_is_gone_is_a_refusal_too(house: House):
    house.manage("scout", model="nowhere")
    refusal = the_refusal(house, house.answer(lead_to("scout")[1]))
    assert "scout cannot run" in refusal


def test_an_empty_prompt_starts_nothing(house: House):
    call = scripts.task_call("part", "   ")
    refusal = the_refusal(house, house.answer(scripts.script({"calls": [call]}, {})[1]))
    assert "prompt is empty" in refusal


def test_a_subagent_cannot_delegate(house: House, model: ScriptedModel):
    child = scripts.script({"calls": [scripts.task_call("deeper", "Go.")]}, {"text": "alone"})
    run = house.answer(scripts.delegate_to([child])[1])
    (delegated,) = house.children(run)
    assert house.children(delegated) == []
    assert "task" not in model.calls_of(child[0])[0].tool_names
    (result,) = house.results(delegated)
    assert "task is not available to subagents" in str(result["content"])
    assert house.said(delegated) == "alone"


def test_a_subagents_limits_come_from_the_layers_that_won(house: House):
    house.configure(
        subagents={"agents": {"general-purpose": {"max_turns": 9, "timeout_seconds": 77}}},
        runs={"token_budget": {"max_tokens": 50_000}},
    )
    run = house.answer(scripts.delegate_to([scripts.instant()])[1])
    (child,) = house.children(run)
    limits = limits_from_json(child.definition["limits"])
    assert (limits.max_turns, limits.timeout_seconds) == (9, 77)
    assert "subagents.agents.general-purpose" in limits.max_turns_layer
    assert limits.tree_tokens is not None
    assert limits.tree_tokens.max_tokens == 50_000
