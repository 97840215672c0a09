"""A slot means "may call a model or a tool now": whoever waits for children holds none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runs import services
from runs.event_types import EventType
from runs.models import Run
from runs.statuses import RunStatus
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel


def test_one_slot_is_enough_for_a_lead_and_its_three_children(house: House, model: ScriptedModel):
    run = house.ask(scripts.delegate_to([scripts.instant() for _ in range(3)])[1])
    house.work(slots=1)
    assert house.again(run).status == RunStatus.SUCCESS
    assert [child.status for child in house.children(run)] == ["success"] * 3
    assert model.max_in_flight == 1


def test_twenty_leads_with_three_children_each_finish_on_two_slots(house: House, model: ScriptedModel):
    runs = [house.ask(scripts.delegate_to([scripts.instant() for _ in range(3)])[1]) for _ in range(20)]
    with Worker(slots=2) as worker:
        ended = house.until_ended(*runs)
        house.until(lambda: worker.host.slots.free == 2)
    assert {run.status for run in ended} == {RunStatus.SUCCESS}
    assert Run.objects.filter(depth=1, status=RunStatus.SUCCESS).count() == 60
    assert model.max_in_flight <= 2


def test_a_waiting_lead_says_what_it_waits_for(house: House, model: ScriptedModel):
    child = scripts.gated("go")
    run = house.ask(scripts.delegate_to([child])[1])
    other = scripts.gated("other")
    with Worker(slots=1) as worker:
        house.until_calls(child[0])
        house.until(lambda: house.again(run).waiting_for == "children")
        house.ask(other[1])
        worker.wake()
        model.open_gate("go")
        house.until_ended(run)
        model.open_gate("other")
        house.until(lambda: not Run.objects.active().exists())
    waits = [event.get("waiting_for") for event in house.events(run, EventType.RUN_WAITING)]
    assert waits[0] == "children"
    assert waits[-1] is None


def test_children_come_before_new_leads(house: House, model: ScriptedModel):
    children = [scripts.instant() for _ in range(3)]
    lead_id, prompt = scripts.delegate_to(children)
    first = house.ask(prompt)
    others = [scripts.instant() for _ in range(3)]
    for _other_id, words in others:
        house.ask(words)
    house.work(slots=1)
    order = [call.script_id for call in model.requests]
    assert order[:4] == [lead_id, *(child_id for child_id, _ in children)]
    assert house.again(first).status == RunStatus.SUCCESS


def test_a_slot_is_free_again_when_a_lead_is_cancelled_while_it_waits_for_children(house: House):
    child = scripts.gated("never")
    run = house.ask(scripts.delegate_to([child])[1])
    with Worker(slots=1) as worker:
        house.until_calls(child[0])
        services.cancel_run(run_id=run.pk, by="ada")
        house.until_ended(run, *house.children(run))
        house.until(lambda: (worker.host.slots.free, worker.host.waiting) == (1, 0))


def test_a_lead_whose_slot_is_taken_waits_for_it_visibly_and_can_be_cancelled_there(house: House, model: ScriptedModel):
    child, holder_script = scripts.gated("child"), scripts.gated("holder")
    run = house.ask(scripts.delegate_to([child])[1])
    with Worker(slots=1, lease_seconds=2) as worker:
        house.until_calls(child[0])
        house.let_leases_lapse(*house.children(run))
        with Worker(name="other", slots=1):
            house.until(lambda: house.children(run)[0].worker == "other")
            holder = house.ask(holder_script[1])
            house.until_calls(holder_script[0])
            assert house.again(holder).worker == worker.name
            model.open_gate("child")
            house.until(lambda: house.again(run).waiting_for == "slot")
            services.cancel_run(run_id=run.pk, by="ada")
            house.until_ended(run)
        model.open_gate("holder")
        house.until_ended(holder)
        house.until(lambda: (worker.host.slots.free, worker.host.waiting) == (1, 0))
    assert house.again(run).status == RunStatus.CANCELLED
    assert [child.status for child in house.children(run)] == ["success"]
