"""A message for a run that works: it is picked up once, with a receipt, or refused clearly."""

from __future__ import annotations

import orjson
import pytest

from runs import services
from runs.errors import BadInput, Fenced, NotSteerable, RunNotFound, Steered
from runs.event_types import EventType
from runs.lifecycle import Ending, Finish, HandOver, Held, Progress, ReadSteers, commit, commit_one
from runs.lifecycle.steering import MOST_UNREAD
from runs.models import Run, Thread, new_id
from runs.statuses import RunStatus
from tests.runs.acts import ai, claimed, events, finish, lose_lease, start_child, transcript
from tests.runs.invariants import assert_queue_whole, assert_whole

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(thread: Thread) -> Held:
    return claimed(services.start_run(thread=thread, text="hello"))


@pytest.fixture
def child(lead: Held) -> Held:
    return claimed(start_child(lead))


def steer(run: Run | Held, text: str = "look at 2024 too") -> str:
    return str(services.steer_run(run_id=run.run_id if isinstance(run, Held) else run.pk, text=text, by="lin"))


def said(held: Held, *kinds: EventType) -> list[dict[str, object]]:
    thread = Thread.objects.get(pk=held.thread_id)
    return [orjson.loads(event.data) for event in events(thread, *kinds)]


def test_a_steer_enters_the_transcript_when_it_is_picked_up_and_not_before(child):
    message_id = steer(child)
    assert transcript(child.thread_id) == ["human: Find three sources"]
    (message,) = commit_one(ReadSteers(held=child, turn=4))
    assert (message["id"], message["content"]) == (message_id, "look at 2024 too")
    assert transcript(child.thread_id) == ["human: Find three sources", "human: look at 2024 too"]
    assert commit_one(ReadSteers(held=child, turn=5)) == []


def test_the_receipt_names_the_turn_on_the_runs_log_and_on_its_leads(thread, lead, child):
    message_id = steer(child)
    commit_one(ReadSteers(held=child, turn=4))
    assert said(child, EventType.RUN_STEERED) == [{"id": message_id, "text": "look at 2024 too", "by": "lin"}]
    assert said(child, EventType.RUN_STEER_READ) == [{"id": message_id, "turn": 4}]
    task = str(child.run_id)
    assert said(lead, EventType.TASK_STEERED) == [
        {"task": task, "id": message_id, "text": "look at 2024 too", "by": "lin"}
    ]
    assert said(lead, EventType.TASK_STEER_READ) == [{"task": task, "id": message_id, "turn": 4}]
    assert_whole([thread.pk, child.thread_id])


def test_every_step_says_whether_a_message_waits(child):
    assert commit_one(Progress(held=child, entries=[ai("one")])) is False
    steer(child)
    assert commit_one(Progress(held=child, entries=[ai("two")])) is True


def test_a_run_does_not_end_well_before_it_has_picked_up_what_waits(child):
    steer(child)
    refused = Finish(held=child, ending=Ending(status=RunStatus.SUCCESS, result="done"), entries=[ai("done")])
    assert isinstance(commit([refused])[0], Steered)
    assert transcript(child.thread_id) == ["human: Find three sources"]
    commit_one(ReadSteers(held=child, turn=2))
    finish(child, answer="done")
    assert Run.objects.get(pk=child.run_id).status == RunStatus.SUCCESS


@pytest.mark.parametrize(
    "ending",
    [
        Ending(status=RunStatus.ERROR, error_code="model_failed"),
        Ending(status=RunStatus.TIMEOUT),
        Ending(status=RunStatus.CANCELLED),
        Ending(status=RunStatus.SUCCESS, stop_reason="turn_capped"),
    ],
)
def test_an_end_that_comes_first_says_that_nobody_read_it(thread, lead, child, ending):
    message_id = steer(child)
    commit_one(Finish(held=child, ending=ending))
    assert said(child, EventType.RUN_STEER_READ) == [{"id": message_id}]
    assert said(lead, EventType.TASK_STEER_READ) == [{"task": str(child.run_id), "id": message_id}]
    assert Run.objects.get(pk=child.run_id).steers == []
    assert_whole([thread.pk, child.thread_id])


def test_a_steer_that_arrives_after_the_end_is_refused(child):
    finish(child)
    with pytest.raises(NotSteerable) as refused:
        steer(child)
    assert refused.value.reason == "ended"
    assert said(child, EventType.RUN_STEERED) == []


def test_a_run_that_is_being_stopped_takes_no_message(child):
    services.cancel_run(run_id=child.run_id, by="lin")
    with pytest.raises(NotSteerable) as refused:
        steer(child)
    assert refused.value.reason == "stopping"


def test_a_message_that_waits_behind_another_run_takes_none_either(thread, lead):
    waiting = services.start_run(thread=thread, text="and then?")
    with pytest.raises(NotSteerable) as refused:
        steer(waiting)
    assert refused.value.reason == "waiting"


def test_a_steer_survives_a_hand_over_and_a_lost_worker(child):
    message_id = steer(child)
    commit_one(HandOver(held=child))
    lose_lease(child)
    again = claimed(Run.objects.get(pk=child.run_id), worker="w2")
    lose_lease(again)
    third = claimed(Run.objects.get(pk=child.run_id), worker="w3")
    assert isinstance(commit([ReadSteers(held=again, turn=1)])[0], Fenced)
    (message,) = commit_one(ReadSteers(held=third, turn=1))
    assert message["id"] == message_id


def test_a_queued_child_may_be_steered_before_it_begins(lead):
    queued = start_child(lead)
    steer(queued)
    held = claimed(queued)
    assert [m["content"] for m in commit_one(ReadSteers(held=held, turn=1))] == ["look at 2024 too"]


def test_unread_messages_are_bounded(child):
    for number in range(MOST_UNREAD):
        steer(child, f"message {number}")
    with pytest.raises(BadInput) as refused:
        steer(child)
    assert refused.value.field == "text"


@pytest.mark.parametrize("text", ["", "   \n", "x" * (services.MAX_TEXT_LENGTH + 1)])
def test_a_steer_needs_words_in_bounds(child, text):
    with pytest.raises(BadInput):
        steer(child, text)


def test_a_run_that_does_not_exist_is_said():
    with pytest.raises(RunNotFound):
        services.steer_run(run_id=new_id(), text="hello", by="lin")


def test_odd_characters_cannot_break_the_log(thread, child):
    steer(child, "nul \x00 and half an emoji \ud83d")
    commit_one(ReadSteers(held=child, turn=1))
    assert_whole([thread.pk, child.thread_id])
    assert_queue_whole()
