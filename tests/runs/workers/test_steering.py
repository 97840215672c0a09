"""A running child is told something: it hears it before its next model call, wherever it is executed then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runs import services
from runs.errors import NotSteerable
from runs.event_types import EventType
from runs.statuses import RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from runs.models import Run
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel

LOOK = scripts.call("ls")


def child_of(house: House, run: Run) -> Run:
    house.until(lambda: len(house.children(run)) == 1)
    return house.children(run)[0]


def roles(house: House, run: Run) -> list[str]:
    return [message["type"] for message in house.messages(run)]


def test_it_is_heard_before_the_next_model_call_and_no_call_is_repeated(house: House, model: ScriptedModel):
    script_id, prompt = scripts.script({"calls": [LOOK], "gate": "go"}, {"text": "Done, 2024 too."})
    run = house.ask(scripts.delegate_to([(script_id, prompt)])[1])
    with Worker():
        house.until_calls(script_id)
        child = child_of(house, run)
        services.steer_run(run_id=child.pk, text="Look at 2024 too", by="ada")
        model.open_gate("go")
        house.until_ended(run)
    assert roles(house, child) == ["human", "ai", "tool", "human", "ai"]
    (receipt,) = house.events(child, EventType.RUN_STEER_READ)
    assert receipt["turn"] == 2
    assert len(model.calls_of(script_id)) == 2
    assert model.calls_of(script_id)[-1].user_text == "Look at 2024 too"
    assert "Done, 2024 too." in str(house.results(run)[0]["content"])


def test_one_that_comes_while_the_answer_is_written_still_gets_a_turn(house: House, model: ScriptedModel):
    script_id, prompt = scripts.script({"gate": "go", "text": "First answer."}, {"text": "Second answer."})
    run = house.ask(scripts.delegate_to([(script_id, prompt)])[1])
    with Worker():
        house.until_calls(script_id)
        child = child_of(house, run)
        services.steer_run(run_id=child.pk, text="And 2024?", by="ada")
        model.open_gate("go")
        house.until_ended(run)
    assert roles(house, child) == ["human", "ai", "human", "ai"]
    assert house.said(child) == "Second answer."
    assert "Second answer." in str(house.results(run)[0]["content"])
    assert house.again(child).model_calls == 2


def test_it_survives_a_hand_over(house: House, model: ScriptedModel):
    script_id, prompt = scripts.script({"calls": [LOOK], "gate": "go"}, {"text": "Done."})
    run = house.ask(scripts.delegate_to([(script_id, prompt)])[1])
    first = Worker(name="first")
    with first:
        house.until_calls(script_id)
        child = child_of(house, run)
        services.steer_run(run_id=child.pk, text="Look at 2024 too", by="ada")
        first.stop()
    with Worker(name="second"):
        house.until(lambda: len(model.calls_of(script_id)) == 2)
        model.open_gate("go")
        house.until_ended(run)
    # Nothing of the first attempt was stored, so it is heard with the request itself.
    assert roles(house, child)[:2] == ["human", "human"]
    assert [receipt["turn"] for receipt in house.events(child, EventType.RUN_STEER_READ)] == [1]
    assert house.again(child).status == RunStatus.SUCCESS


def test_a_lead_can_be_told_something_too_while_its_children_work(house: House, model: ScriptedModel):
    part = scripts.gated("go")
    script_id, prompt = scripts.delegate_to([part])
    run = house.ask(prompt)
    with Worker():
        house.until_calls(part[0])
        services.steer_run(run_id=run.pk, text="Write it as a table", by="ada")
        model.open_gate("go")
        house.until_ended(run)
    heard = roles(house, run)
    assert heard[-2:] == ["human", "ai"]  # before its answer when there is time, else it answers once more
    assert heard.count("human") == 2
    assert len(model.calls_of(script_id)) == heard.count("ai")


def test_a_run_at_its_turn_limit_answers_with_what_it_has_and_says_it_did_not_hear(house: House, model: ScriptedModel):
    house.configure(subagents={"agents": {"general-purpose": {"max_turns": 1}}})
    script_id, prompt = scripts.script({"calls": [LOOK], "text": "Half of it.", "gate": "go"})
    run = house.ask(scripts.delegate_to([(script_id, prompt)])[1])
    with Worker():
        house.until_calls(script_id)
        child = child_of(house, run)
        services.steer_run(run_id=child.pk, text="More", by="ada")
        model.open_gate("go")
        house.until_ended(run)
    assert house.again(child).stop_reason == "turn_capped"
    (receipt,) = house.events(child, EventType.RUN_STEER_READ)
    assert "turn" not in receipt


def test_after_the_end_it_is_refused(house: House):
    run = house.answer(scripts.delegate_to([scripts.instant()])[1])
    (child,) = house.children(run)
    with pytest.raises(NotSteerable):
        services.steer_run(run_id=child.pk, text="too late", by="ada")
