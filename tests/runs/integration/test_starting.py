"""Messages become runs: checked, numbered, one active run for each thread."""

from __future__ import annotations

import orjson
import pytest
from django_q.models import OrmQ

from runs import services
from runs.errors import BadInput, ThreadBusy, ThreadNotFound
from runs.event_types import EventType
from runs.lifecycle import commit_one
from runs.models import Event, Message, Run, Thread
from runs.services import MultitaskStrategy
from runs.statuses import RunStatus, ThreadStatus
from tests.runs.acts import claim, claimed, events, finish, say, status, transcript
from tests.runs.factories import PersonFactory, ThreadFactory
from tests.runs.invariants import assert_whole

pytestmark = pytest.mark.django_db


def test_a_message_becomes_a_pending_run_that_a_worker_may_claim(thread):
    run = services.start_run(thread=thread, text="Compare three apps")
    assert transcript(thread) == ["human: Compare three apps"]
    assert [event.type for event in events(thread)] == ["run.queued", "message"]
    thread.refresh_from_db()
    assert (thread.status, thread.title) == (ThreadStatus.BUSY, "Compare three apps")
    assert [one.run.pk for one in claim().runs] == [run.pk]


def test_a_message_behind_an_active_run_waits_outside_the_transcript(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    third = services.start_run(thread=thread, text="third")
    assert transcript(thread) == ["human: first"]
    queued = [orjson.loads(event.data) for event in events(thread, EventType.RUN_QUEUED)]
    assert [fact.get("behind") for fact in queued] == [None, str(first.pk), str(second.pk)]
    assert [fact.get("text") for fact in queued] == [None, "second", "third"]
    assert third.queue_id is None
    assert OrmQ.objects.count() == 1


def test_waiting_messages_get_their_turn_in_the_order_they_came(thread):
    for text in ("first", "second", "third"):
        services.start_run(thread=thread, text=text)
    for text in ("first", "second", "third"):
        (one,) = claim().runs
        assert transcript(thread)[-1] == f"human: {text}"
        finish(one.held, answer=f"re {text}")
    said = transcript(thread)
    assert said == [f"{who}{text}" for text in ("first", "second", "third") for who in ("human: ", "ai: re ")]
    thread.refresh_from_db()
    assert thread.status == ThreadStatus.IDLE
    assert_whole([thread.pk])


def test_reject_refuses_behind_an_active_run_and_leaves_nothing(thread):
    services.start_run(thread=thread, text="first")
    with pytest.raises(ThreadBusy):
        services.start_run(thread=thread, text="second", multitask=MultitaskStrategy.REJECT)
    assert Run.objects.count() == 1
    assert [event.type for event in events(thread)] == ["run.queued", "message"]


def test_reject_starts_on_an_idle_thread(thread):
    assert services.start_run(thread=thread, text="first", multitask=MultitaskStrategy.REJECT).pk


def test_a_thread_that_says_busy_without_an_active_run_takes_the_next_message(thread):
    Thread.objects.filter(pk=thread.pk).update(status=ThreadStatus.BUSY)
    run = services.start_run(thread=thread, text="hello", multitask=MultitaskStrategy.REJECT)
    assert [one.run.pk for one in claim().runs] == [run.pk]


def test_interrupt_ends_the_running_run_and_keeps_what_it_had_said(thread):
    first = services.start_run(thread=thread, text="first")
    held = claimed(first)
    say(held, "so far")
    second = services.start_run(thread=thread, text="second", multitask=MultitaskStrategy.INTERRUPT)
    assert Run.objects.get(pk=first.pk).cancel_requested == RunStatus.INTERRUPTED
    finish(held, RunStatus.INTERRUPTED)  # as its worker does
    assert transcript(thread) == ["human: first", "ai: so far", "human: second"]
    assert [one.run.pk for one in claim().runs] == [second.pk]


def test_interrupt_ends_a_run_that_no_worker_has_claimed_and_keeps_its_message(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second", multitask=MultitaskStrategy.INTERRUPT)
    assert status(first) == RunStatus.INTERRUPTED
    assert transcript(thread) == ["human: first", "human: second"]
    assert [one.run.pk for one in claim().runs] == [second.pk]
    assert_whole([thread.pk])


def test_of_many_interrupts_the_last_wins_and_no_words_are_lost(thread):
    running = services.start_run(thread=thread, text="0")
    held = claimed(running)
    for number in range(1, 6):
        services.start_run(thread=thread, text=str(number), multitask=MultitaskStrategy.INTERRUPT)
    finish(held, RunStatus.INTERRUPTED)
    assert transcript(thread) == [f"human: {number}" for number in range(6)]
    (last,) = claim().runs
    finish(last.held, answer="done")
    ended = list(Run.objects.filter(thread=thread).order_by("created_at").values_list("status", flat=True))
    assert ended == ["interrupted"] * 5 + ["success"]
    assert_whole([thread.pk])


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_message_without_words_is_refused(thread, text):
    with pytest.raises(BadInput) as refusal:
        services.start_run(thread=thread, text=text)
    assert refusal.value.field == "text"
    assert not Run.objects.exists()


@pytest.mark.parametrize("length", [200_001, 1 << 20])
def test_a_message_that_is_too_long_is_refused_with_both_numbers(thread, length):
    with pytest.raises(BadInput, match=r"200,000") as refusal:
        services.start_run(thread=thread, text="x" * length)
    assert f"{length:,}" in refusal.value.message


def test_the_longest_message_is_taken_whole(thread):
    services.start_run(thread=thread, text="好" * 200_000)
    assert transcript(thread) == ["human: " + "好" * 200_000]


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "a\udfffb", "\x00"])
def test_text_that_no_database_takes_is_made_storable(thread, text):
    services.start_run(thread=thread, text="first")
    services.start_run(thread=thread, text=text)  # waits: the same text in the run's input and in the event
    services.start_run(thread=ThreadFactory(), text=text)
    stored = {message.data for message in Message.objects.all()} | {event.data for event in Event.objects.all()}
    assert not any("\x00" in text or "\ud800" in text or "\udfff" in text for text in stored)


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["list"]])
def test_a_message_that_is_no_text_is_refused(thread, text):
    with pytest.raises(BadInput):
        services.start_run(thread=thread, text=text)


@pytest.mark.parametrize("agent", ["", "  ", "x" * 65, 7])
def test_an_agent_name_that_cannot_be_one_is_refused_with_its_field(thread, agent):
    with pytest.raises(BadInput) as refusal:
        services.start_run(thread=thread, text="hello", agent=agent)
    assert refusal.value.field == "agent"


@pytest.mark.parametrize("content", [None, 5, {"a": 1}, [None, 5, {"text": 7}, {"text": "words"}, "x\x00"]])
def test_message_content_of_any_shape_is_stored(thread, content):
    start = services.start_verb(
        thread_id=thread.pk, owner_id=thread.owner_id, messages=[{"type": "human", "id": "1", "content": content}]
    )
    commit_one(start)
    assert Message.objects.count() == 1


def test_options_are_checked_and_their_clamps_are_shown_on_the_run(thread):
    run = services.start_run(thread=thread, text="hello", options={"max_total_subagents": 999, "owner": "eve"})
    run.refresh_from_db()
    assert run.options == {"max_total_subagents": 50}
    assert run.metadata == {"clamped": {"max_total_subagents": [999, 50]}}


def test_a_message_on_a_thread_that_is_gone_is_refused(thread):
    Thread.objects.filter(pk=thread.pk).delete()
    with pytest.raises(ThreadNotFound):
        services.start_run(thread=thread, text="hello")


def test_a_message_on_somebody_elses_thread_is_refused_as_if_there_were_none(thread):
    verb = services.start_verb(
        thread_id=thread.pk, owner_id=PersonFactory().pk, messages=[services.user_message("hello")]
    )
    with pytest.raises(ThreadNotFound):
        commit_one(verb)
