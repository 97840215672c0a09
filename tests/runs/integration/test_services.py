"""What people and programs do: one verb, one transaction."""

from __future__ import annotations

from uuid import uuid4

import orjson
import pytest
from django_q.models import OrmQ

from runs import services
from runs.errors import BadInput, Fenced, RunNotFound, ThreadBusy, ThreadExists, ThreadNotFound
from runs.event_types import EventType
from runs.lifecycle import Cancel, Progress, commit, commit_one
from runs.models import Event, Message, Run, Thread
from runs.services import MultitaskStrategy
from runs.statuses import RunStatus, ThreadStatus
from runs.workspaces import workspace_folder
from tests.runs.acts import ai, claim, claimed, events, finish, say, start_child, status, transcript
from tests.runs.factories import PersonFactory, RunFactory, ThreadFactory, started
from tests.runs.invariants import assert_queue_whole, assert_whole

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread() -> Thread:
    return ThreadFactory()


# --- starting -----------------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize("agent", ["", "  ", "x" * 65, None, 7])
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


# --- cancelling ---------------------------------------------------------------------------------------------------
def test_cancelling_a_run_nobody_executes_ends_it_at_once(thread):
    run = services.start_run(thread=thread, text="hello")
    assert services.cancel_run(run_id=run.pk, by="lin") is True
    run.refresh_from_db()
    assert (run.status, run.cancelled_by, run.error_code) == ("cancelled", "lin", "cancelled")
    thread.refresh_from_db()
    assert thread.status == ThreadStatus.IDLE
    assert_queue_whole()


def test_cancelling_a_running_run_asks_its_worker_and_the_first_wish_counts(thread):
    run = services.start_run(thread=thread, text="hello")
    claimed(run)
    assert services.cancel_run(run_id=run.pk, by="lin") is True
    assert services.cancel_run(run_id=run.pk, by="ann", status=RunStatus.INTERRUPTED) is True
    run.refresh_from_db()
    assert (run.status, run.cancel_requested, run.cancelled_by) == ("running", "cancelled", "lin")


def test_cancelling_a_run_reaches_its_waiting_and_running_children(thread):
    lead = services.start_run(thread=thread, text="hello")
    held = claimed(lead)
    running = start_child(held, "call-1")
    claimed(running)
    waiting = start_child(held, "call-2")
    services.cancel_run(run_id=lead.pk, by="lin")
    running.refresh_from_db()
    assert (running.cancel_requested, running.cancelled_by) == ("cancelled", "parent")
    assert status(waiting) == RunStatus.CANCELLED
    assert status(lead) == RunStatus.RUNNING
    (ended,) = events(thread, EventType.TASK_ENDED)
    assert orjson.loads(ended.data)["task"] == str(waiting.pk)


def test_cancelling_one_child_leaves_its_parent_and_the_others_alone(thread):
    lead = services.start_run(thread=thread, text="hello")
    held = claimed(lead)
    one, other = start_child(held, "call-1"), start_child(held, "call-2")
    assert services.cancel_run(run_id=one.pk, by="lin") is True
    assert (status(one), status(other), status(lead)) == ("cancelled", "pending", "running")
    assert Run.objects.get(pk=lead.pk).cancel_requested == ""


def test_cancelling_what_has_ended_changes_nothing(thread):
    run = services.start_run(thread=thread, text="hello")
    finish(claimed(run), answer="done")
    before = Event.objects.count()
    assert services.cancel_run(run_id=run.pk, by="lin") is False
    assert (status(run), Event.objects.count()) == ("success", before)


def test_cancelling_a_run_that_does_not_exist_is_refused():
    with pytest.raises(RunNotFound):
        services.cancel_run(run_id=uuid4(), by="lin")


def test_a_long_or_unstorable_name_of_who_cancelled_is_no_reason_to_fail(thread):
    run = services.start_run(thread=thread, text="hello")
    assert services.cancel_run(run_id=run.pk, by="\x00" + "x" * 400)


def test_a_cancelled_run_gives_the_turn_to_the_next(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    services.cancel_run(run_id=first.pk, by="lin")
    assert [one.run.pk for one in claim().runs] == [second.pk]


def test_cancelling_the_active_run_and_the_one_behind_it_in_one_commit_leaves_the_thread_idle(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    assert commit([Cancel(run_id=run.pk, lock_threads=(thread.pk,)) for run in (first, second)]) == [True, True]
    assert_whole([thread.pk])
    assert_queue_whole()


# --- messages that wait -------------------------------------------------------------------------------------------
def test_a_message_that_is_taken_back_never_enters_the_transcript(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    third = services.start_run(thread=thread, text="third")
    assert services.remove_queued(run_id=second.pk, by="lin") is True
    finish(claimed(first))
    assert transcript(thread) == ["human: first", "human: third"]
    assert [one.run.pk for one in claim().runs] == [third.pk]


@pytest.mark.parametrize("act", [lambda run: None, claimed, lambda run: finish(claimed(run))])
def test_taking_back_a_message_whose_turn_has_come_does_not_touch_its_run(thread, act):
    run = services.start_run(thread=thread, text="first")
    act(run)
    before = status(run)
    assert services.remove_queued(run_id=run.pk, by="lin") is False
    run.refresh_from_db()
    assert (run.status, run.cancel_requested) == (before, "")


def test_taking_back_what_does_not_exist_is_no_fault():
    assert services.remove_queued(run_id=uuid4(), by="lin") is False
    assert services.send_now(run_id=uuid4(), by="lin") is False


def test_send_now_brings_a_message_before_those_that_wait_longer_and_drops_none(thread):
    running = services.start_run(thread=thread, text="0")
    held = claimed(running)
    services.start_run(thread=thread, text="1")
    services.start_run(thread=thread, text="2")
    third = services.start_run(thread=thread, text="3")
    assert services.send_now(run_id=third.pk, by="lin") is True
    assert Run.objects.get(pk=running.pk).cancel_requested == RunStatus.INTERRUPTED
    finish(held, RunStatus.INTERRUPTED)
    for _ in range(3):
        finish(claim().runs[0].held)
    assert transcript(thread) == ["human: 0", "human: 3", "human: 1", "human: 2"]


def test_send_now_interrupts_a_run_that_no_worker_has_claimed_yet(thread):
    first = services.start_run(thread=thread, text="first")
    second = services.start_run(thread=thread, text="second")
    assert services.send_now(run_id=second.pk, by="lin") is True
    assert status(first) == RunStatus.INTERRUPTED
    assert [one.run.pk for one in claim().runs] == [second.pk]


def test_send_now_keeps_finished_children_and_stops_the_others(thread):
    lead = services.start_run(thread=thread, text="first")
    held = claimed(lead)
    done, working = start_child(held, "call-1"), start_child(held, "call-2")
    for one in claim().runs:
        if one.run.pk == done.pk:
            finish(one.held, answer="found")
    waiting = services.start_run(thread=thread, text="second")
    services.send_now(run_id=waiting.pk, by="lin")
    assert status(done) == RunStatus.SUCCESS
    assert Run.objects.get(pk=working.pk).cancel_requested == RunStatus.CANCELLED


def test_send_now_for_a_message_whose_turn_has_come_does_nothing(thread):
    run = services.start_run(thread=thread, text="first")
    claimed(run)
    assert services.send_now(run_id=run.pk, by="lin") is False
    assert Run.objects.get(pk=run.pk).cancel_requested == ""


def test_stop_all_ends_everything_and_nothing_that_waited_is_said(thread):
    lead = services.start_run(thread=thread, text="first")
    held = claimed(lead)
    child = start_child(held)
    for text in ("second", "third"):
        services.start_run(thread=thread, text=text)
    assert services.stop_all(thread_id=thread.pk, by="lin") == 4
    assert status(child) == RunStatus.CANCELLED
    finish(held, RunStatus.CANCELLED)
    assert transcript(thread) == ["human: first"]
    assert_whole([thread.pk, child.thread_id])
    assert services.stop_all(thread_id=thread.pk, by="lin") == 0


def test_stop_all_on_a_thread_that_nobody_executes_leaves_it_idle(thread):
    for text in ("first", "second", "third"):
        services.start_run(thread=thread, text=text)
    services.stop_all(thread_id=thread.pk, by="lin")
    assert transcript(thread) == ["human: first"]
    assert_whole([thread.pk])


def test_stop_all_on_a_thread_that_does_not_exist_is_refused():
    with pytest.raises(ThreadNotFound):
        services.stop_all(thread_id=uuid4(), by="lin")


# --- threads ------------------------------------------------------------------------------------------------------
def test_a_thread_with_a_wanted_id_is_made_once():
    owner, wanted = PersonFactory(), uuid4()
    made = services.create_thread(owner=owner, thread_id=wanted, title="\x00" + "t" * 300, metadata={"a": "\ud800"})
    made.refresh_from_db()
    assert (made.pk, len(made.title), made.metadata) == (wanted, 200, {"a": "\ufffd"})


@pytest.mark.django_db(transaction=True)
def test_a_wanted_id_that_is_taken_is_refused():
    taken = ThreadFactory()
    with pytest.raises(ThreadExists):
        services.create_thread(owner=taken.owner, thread_id=taken.pk)


@pytest.mark.parametrize("title", ["", "  \n ", "x" * 201, None, 5])
def test_a_title_that_cannot_be_one_is_refused_with_its_field(thread, title):
    with pytest.raises(BadInput) as refusal:
        services.rename_thread(thread_id=thread.pk, title=title)
    assert refusal.value.field == "title"


def test_a_new_title_is_one_storable_line(thread):
    services.rename_thread(thread_id=thread.pk, title="  New\n title\x00 ")
    thread.refresh_from_db()
    assert thread.title == "New title\ufffd"


def test_renaming_a_thread_that_does_not_exist_is_refused():
    with pytest.raises(ThreadNotFound):
        services.rename_thread(thread_id=uuid4(), title="x")


def test_a_deleted_thread_takes_its_children_their_logs_its_queue_rows_and_its_files_along(thread):
    lead = services.start_run(thread=thread, text="first")
    held = claimed(lead)
    child = start_child(held)
    claimed(child)
    services.start_run(thread=thread, text="second")
    folder = workspace_folder(thread.pk)
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("notes")
    other = started()
    services.delete_thread(thread_id=thread.pk, by="lin")
    assert list(Thread.objects.all()) == [other.thread]
    assert list(Run.objects.all()) == [other]
    assert Event.objects.exclude(thread=other.thread).count() == 0
    assert OrmQ.objects.count() == 1
    assert not folder.exists()


def test_a_worker_whose_thread_was_deleted_can_write_nothing(thread):
    held = claimed(services.start_run(thread=thread, text="first"))
    services.delete_thread(thread_id=thread.pk, by="lin")
    with pytest.raises(Fenced):
        commit_one(Progress(held=held, entries=[ai("late")]))
    assert not Event.objects.exists()


def test_deleting_a_thread_that_does_not_exist_is_refused():
    with pytest.raises(ThreadNotFound):
        services.delete_thread(thread_id=uuid4(), by="lin")


def test_a_person_sees_their_own_threads_and_runs_and_nobody_elses():
    mine, other = RunFactory(), RunFactory()
    lin = mine.thread.owner
    assert list(Thread.objects.all().visible_to(lin)) == [mine.thread]
    assert list(Run.objects.all().visible_to(lin)) == [mine]
    lin.is_active = False
    assert not Thread.objects.all().visible_to(lin).exists()
    assert not Run.objects.all().visible_to(lin).exists()
    assert other.thread.owner != lin
