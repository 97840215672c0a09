from __future__ import annotations

from uuid import uuid4

import orjson
import pytest

from engine.ports import Counters
from engine.stop import SubagentStatus
from runs import log
from runs.lifecycle import Progress, commit_one
from runs.models import Event
from runs.statuses import RunStatus
from runs.worker.children import result_of
from runs.worker.steps import Meter, salient, task_steps
from tests.runs.acts import ai, claimed, delta, finish, say, start_child
from tests.runs.factories import started

pytestmark = pytest.mark.django_db


def test_rows_carry_their_messages_in_their_places():
    run = started(text="hello")
    say(claimed(run), "hi")
    rows = log.read(run.thread_id, 0)
    assert [row.seq for row in rows] == [1, 2, 3, 4]
    assert [(row.type, orjson.loads(row.data).get("content")) for row in rows if row.type == "message"] == [
        ("message", "hello"),
        ("message", "hi"),
    ]
    assert all(row.run_id == run.pk and row.at.tzinfo for row in rows)


def test_rows_of_many_threads_are_read_past_each_ones_cursor():
    runs = [started() for _ in range(3)]
    cursors = {run.thread_id: place for place, run in enumerate(runs)}
    found = log.read_many(cursors)
    assert {thread_id: [row.seq for row in rows] for thread_id, rows in found.items()} == {
        runs[0].thread_id: [1, 2],
        runs[1].thread_id: [2],
    }


def test_more_threads_are_read_at_once_than_one_statement_takes():
    run = started()
    cursors = {uuid4(): 0 for _ in range(1500)} | {run.thread_id: 0}
    assert list(log.read_many(cursors)) == [run.thread_id]


def test_a_limit_gives_the_oldest_rows():
    run = started()
    held = claimed(run)
    commit_one(Progress(held=held, entries=[delta(str(number)) for number in range(20)]))
    assert [row.seq for row in log.read(run.thread_id, 3, limit=5)] == [4, 5, 6, 7, 8]


def test_a_thread_nobody_knows_has_no_rows():
    assert log.read(uuid4(), 0) == []
    assert log.last_seqs([uuid4()]) == {}


def test_pieces_of_a_reply_that_is_stored_whole_say_nothing_new():
    run = started()
    held = claimed(run)
    commit_one(Progress(held=held, entries=[delta("a"), delta("b"), ai("ab"), delta("c")]))
    rows = log.read(run.thread_id, 0)
    kept = log.without_settled_deltas(rows)
    assert [row.type for row in kept][-2:] == ["message", "delta"]
    assert kept == log.without_settled(rows, log.settled_upto(run.thread_id))


def test_events_say_after_which_number_they_are():
    run = started()
    assert [event.seq for event in Event.objects.all().after(run.thread_id, 1)] == [2]


# --- what a child's end means for its parent ----------------------------------------------------------------------
def test_the_result_of_a_child_is_its_whole_answer():
    child = start_child(claimed(started()))
    finish(claimed(child), answer="x" * 5000)
    result = result_of(child.pk)
    assert (result.status, result.text, result.subagent) == (SubagentStatus.COMPLETED, "x" * 5000, "scout")
    assert result.usage is None  # nothing was reported, which is not zero


@pytest.mark.parametrize("ending", [RunStatus.ERROR, RunStatus.TIMEOUT, RunStatus.CANCELLED])
def test_a_child_that_did_not_finish_says_why_and_what_it_had(ending):
    child = start_child(claimed(started()))
    finish(claimed(child), ending, answer="half")
    result = result_of(child.pk)
    assert result.status != SubagentStatus.COMPLETED
    assert "half" in result.text
    assert ending.value in result.text


# --- steps and usage ----------------------------------------------------------------------------------------------
def test_usage_is_counted_once_and_unknown_stays_unknown():
    run = started()
    meter, counters = Meter(run), Counters()
    counters.model_calls = 1
    meter.count(ai("no usage"), counters)
    assert (meter.model_calls, meter.total_tokens) == (1, None)
    counters.model_calls, counters.tokens, counters.tokens_estimated = (
        2,
        7,
        True,
    )  # what the guard made of the silent reply
    usage = {"input_tokens": 10, "output_tokens": 5, "input_token_details": {"cache_read": 4}}
    meter.count({**ai("x"), "usage_metadata": usage}, counters)
    meter.count({"type": "tool", "content": "", "usage_metadata": usage}, counters)
    assert meter.changes(counters) == {
        "model_calls": 2,
        "input_tokens": 10,
        "output_tokens": 5,
        "cached_tokens": 4,
        "guard_tokens": 7,
        "usage_estimated": True,
    }


def test_a_childs_messages_are_steps_of_its_card_and_a_leads_are_none():
    lead = started()
    child = start_child(claimed(lead))
    call = {"id": "c1", "name": "write_file", "args": {"path": "notes.md", "content": "long"}}
    entries = [
        {**ai("I will\nwrite"), "tool_calls": [call]},
        {"type": "tool", "tool_call_id": "c1", "name": "write_file", "content": "no", "status": "error"},
    ]
    steps = task_steps(child, entries, Meter(child))
    assert [(step.kind, step.text, step.failed) for step in steps] == [
        ("text", "I will write", False),
        ("tool", "notes.md", False),
        ("tool_result", "no", True),
    ]
    assert task_steps(lead, entries, Meter(lead)) == ()


@pytest.mark.parametrize("arguments", [None, [], "text", 5, {}, {"path": ""}, {"a": {"b": [1]}}])
def test_arguments_of_any_shape_have_a_line(arguments):
    assert len(salient(arguments)) <= 200


def test_a_line_is_bounded():
    assert len(salient({"command": "x\n" * 500_000})) <= 200
