"""Graphs that go back: a run that is rolled back leaves nothing of its steps, one that forks takes the chat with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runs import services
from runs.errors import CheckpointNotFound
from runs.graphs import state
from runs.lifecycle import roll_back_run, start_instead
from runs.models import GraphBlob, GraphCheckpoint, GraphWrite, Run, Thread
from runs.statuses import ErrorCode, RunStatus
from tests.runs.graphs.registered import gate, happened
from tests.runs.graphs.test_running import ASKS, STEPS
from tests.runs.workers.house import Worker

if TYPE_CHECKING:
    from uuid import UUID

    from tests.runs.graphs.registered import GraphHouse

# It asks twice in one node: the second question takes the first one's place in the same checkpoint.
ASKS_TWICE = """
class State(MessagesState):
    verdict: str

def ask(state):
    who = interrupt("Who?")
    registered.happened.append(who)
    registered.gate("between").wait(60)
    return {"verdict": who + interrupt("Sure?")}

def say(state):
    return {"messages": [AIMessage(f"you said {state['verdict']}")]}

graph = chain(State, ask, say)
"""


def everything(thread_id: UUID) -> Any:
    """What a program and a person see of a thread, and all that is stored of its graph."""
    thread = Thread.objects.get(pk=thread_id)
    writes = GraphWrite.objects.order_by("checkpoint_id", "task_id", "idx")
    return (
        thread.status,
        thread.values,
        state.history_of(thread_id, limit=50),
        state.interrupts_of(thread_id),
        sorted(GraphBlob.objects.values_list("channel", "version")),
        [(row.checkpoint_id, row.task_id, row.idx, row.kind, bytes(row.data)) for row in writes],
    )


def checkpoint(thread_id: UUID, *following: str) -> str:
    """The newest checkpoint after which these nodes come next."""
    states = state.history_of(thread_id, limit=50)
    return next(one["checkpoint_id"] for one in states if one["next"] == list(following))


def steps_and_then_hangs(house: GraphHouse) -> tuple[Run, Any]:
    """A thread with a run that ended well and what it looks like, on which another run hangs in its second node."""
    house.graphs(steps=STEPS)
    gate("second").set()
    before = house.answered("steps", "First.")
    gate("second").clear()
    happened.clear()
    return before, everything(before.thread_id)


def test_a_cancel_that_rolls_back_leaves_the_state_as_it_was(house: GraphHouse):
    before, seen = steps_and_then_hangs(house)
    run = house.start("steps", "Second.", thread=before.thread)
    with Worker():
        house.until(lambda: happened == ["first", "second"])
        assert everything(before.thread_id) != seen
        assert roll_back_run(run.pk, by="ada")
        assert everything(before.thread_id) == seen
        gate("second").set()  # what its worker still does is refused
    assert everything(before.thread_id) == seen
    assert house.words(before) == ["human: First.", "ai: about owls"]
    happened.clear()
    again = house.answered("steps", "Third.", thread=before.thread)
    assert (again.status, happened) == (RunStatus.SUCCESS, ["first", "second"])
    assert Thread.objects.get(pk=before.thread_id).values["done"] == ["first", "second"] * 2


def test_a_run_that_takes_the_place_of_another_begins_where_that_one_did(house: GraphHouse):
    before, _seen = steps_and_then_hangs(house)
    run = house.start("steps", "Second.", thread=before.thread)
    with Worker():
        house.until(lambda: happened == ["first", "second"])
        start = services.graph_start_verb(
            thread_id=before.thread_id,
            owner_id=house.owner.pk,
            agent="steps",
            messages=[services.user_message("Instead.")],
            graph={},
        )
        instead = start_instead(start, by="ada")
        gate("second").set()
        house.until_ended(instead)
    assert house.words(before) == ["human: First.", "ai: about owls", "human: Instead.", "ai: about owls"]
    assert Thread.objects.get(pk=before.thread_id).values["done"] == ["first", "second"] * 2
    assert not GraphCheckpoint.objects.filter(run_id=run.pk).exists()


def test_a_rollback_of_the_first_run_leaves_a_thread_without_a_graph(house: GraphHouse):
    house.graphs(steps=STEPS)
    run = house.start("steps", "Go.")
    with Worker():
        house.until(lambda: happened == ["first", "second"])
        assert roll_back_run(run.pk, by="ada")
        gate("second").set()
    assert [rows.objects.count() for rows in (GraphCheckpoint, GraphBlob, GraphWrite)] == [0, 0, 0]
    assert Thread.objects.get(pk=run.thread_id).values == {}
    assert not state.is_graphs(run.thread_id)


def test_a_resume_that_is_rolled_back_leaves_the_question_open(house: GraphHouse):
    house.graphs(twice=ASKS_TWICE)
    asked = house.answered("twice", "Ask me.")
    seen = everything(asked.thread_id)
    assert seen[0] == "interrupted"
    resumed = house.start("twice", thread=asked.thread, command={"resume": "Ada"})
    with Worker():
        house.until(lambda: happened == ["Ada"])
        assert roll_back_run(resumed.pk, by="ada")
        assert everything(asked.thread_id) == seen
        gate("between").set()
    assert everything(asked.thread_id) == seen
    happened.clear()
    house.answered("twice", thread=asked.thread, command={"resume": "Bert"})
    assert happened == ["Bert"]
    house.answered("twice", thread=asked.thread, command={"resume": ", yes"})
    assert house.words(asked) == ["human: Ask me.", "ai: you said Bert, yes"]


def test_a_second_question_that_is_rolled_back_gives_way_to_the_first_answer(house: GraphHouse):
    house.graphs(asks=ASKS)
    asked = house.answered("asks", "Ask me.")
    seen = everything(asked.thread_id)
    # It goes on to another node and is taken back from there.
    resumed = house.start("asks", thread=asked.thread, command={"resume": "no"})
    assert roll_back_run(resumed.pk, by="ada")
    assert everything(asked.thread_id) == seen


def test_the_chat_follows_a_run_that_forks(house: GraphHouse):
    house.graphs(asks=ASKS)
    asked = house.answered("asks", "Draft it.")
    at = checkpoint(asked.thread_id, "ask")
    house.answered("asks", thread=asked.thread, command={"resume": "yes"})
    house.answered("asks", "Another one.", thread=asked.thread)
    assert house.words(asked) == ["human: Draft it.", "ai: you said yes", "human: Another one."]
    left = state.history_of(asked.thread_id, limit=50)
    house.answered("asks", thread=asked.thread, go_on=True, checkpoint_id=at)
    assert house.words(asked) == ["human: Draft it."]
    assert Thread.objects.get(pk=asked.thread_id).status == "interrupted"  # it asks again
    house.answered("asks", thread=asked.thread, command={"resume": "no"})
    assert house.words(asked) == ["human: Draft it.", "ai: you said no"]
    assert Thread.objects.get(pk=asked.thread_id).values == {"verdict": "no"}
    assert state.history_of(asked.thread_id, limit=50)[-len(left) :] == left  # the left line stays in the history
    # And back to the line that was left.
    old = next(one["checkpoint_id"] for one in left if not one["next"])
    house.answered("asks", "Go on there.", thread=asked.thread, checkpoint_id=old)
    assert house.words(asked) == ["human: Draft it.", "ai: you said yes", "human: Go on there."]


def test_a_run_that_begins_again_from_the_start_says_its_request_again(house: GraphHouse):
    house.graphs(steps=STEPS)
    gate("second").set()
    run = house.answered("steps", "Go.")
    house.answered("steps", thread=run.thread, go_on=True, checkpoint_id=checkpoint(run.thread_id, "__start__"))
    assert house.words(run) == ["human: Go.", "ai: about owls"]
    assert Thread.objects.get(pk=run.thread_id).values["done"] == ["first", "second"]


def test_a_fork_that_waits_follows_when_its_turn_comes_and_a_rollback_undoes_it(house: GraphHouse):
    house.graphs(steps=STEPS)
    gate("second").set()
    run = house.answered("steps", "Go.")
    seen = everything(run.thread_id)
    words = house.words(run)
    at = checkpoint(run.thread_id, "first")
    gate("second").clear()
    happened.clear()
    fork = house.start("steps", "Otherwise.", thread=run.thread, checkpoint_id=at)
    with Worker():
        house.until(lambda: happened == ["first", "second"])
        assert house.words(run) == ["human: Go.", "human: Otherwise."]
        assert roll_back_run(fork.pk, by="ada")
        gate("second").set()
    assert house.words(run) == words
    assert everything(run.thread_id) == seen


@pytest.mark.parametrize("busy", [False, True])
def test_a_checkpoint_that_is_not_there_is_said_at_once_or_when_it_has_gone(house: GraphHouse, busy: bool):
    before, _seen = steps_and_then_hangs(house)
    if not busy:
        with pytest.raises(CheckpointNotFound):
            house.start("steps", thread=before.thread, checkpoint_id="1f0-none")
        return
    run = house.start("steps", "Second.", thread=before.thread)
    with Worker():
        house.until(lambda: happened == ["first", "second"])
        gone = state.history_of(run.thread_id, limit=1)[0]["checkpoint_id"]
        waits = house.start("steps", "From there.", thread=before.thread, checkpoint_id=gone)
        assert roll_back_run(run.pk, by="ada")
        gate("second").set()
    waits = house.again(waits)
    assert (waits.status, waits.error_code) == (RunStatus.ERROR, ErrorCode.CHECKPOINT_GONE)
