"""Going back in a thread's history, on rows: the state, what the next model call gets, and what readers see."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from runs import history, log
from runs.agent_protocol.state import state_upto
from runs.errors import CheckpointNotFound, ThreadBusy, ThreadNotFound
from runs.event_types import EventType, StateUpdated
from runs.ledger import Ledger
from runs.lifecycle import Rewind, commit_one, roll_back, take_back
from runs.lifecycle.rewinding import NO_RUN
from runs.models import Event, Message, Run, Thread
from runs.transcript import last_answer_of
from tests.runs import acts
from tests.runs.factories import PersonFactory, ThreadFactory, started

if TYPE_CHECKING:
    from uuid import UUID

pytestmark = pytest.mark.django_db


def talked(*answers: str) -> Thread:
    """A thread with a question and an answer for each of `answers`."""
    thread: Any = ThreadFactory()
    for answer in answers:
        run = started(thread, text=f"{answer}?")
        acts.finish(acts.claimed(run), answer=answer)
    return thread


def numbers(thread: Thread) -> list[int]:
    return list(Message.objects.filter(thread=thread).order_by("seq").values_list("seq", flat=True))


def back(thread: Thread, to: int, **fields: Any) -> int:
    at: int = commit_one(Rewind(thread_id=thread.pk, owner_id=thread.owner_id, to=to, **fields))
    return at


def said_by_wire(thread_id: UUID, seq: int | None = None) -> list[str]:
    return [message["content"] for message in orjson.loads(state_upto(thread_id, seq).json())["messages"]]


def test_what_comes_after_a_rewind_goes_on_from_there():
    thread = talked("one", "two")
    back(thread, numbers(thread)[1])
    assert acts.transcript(thread) == ["human: one?", "ai: one"]
    assert last_answer_of(thread.pk) == "one"
    run = started(thread, text="three?")
    (claimed,) = acts.claim().runs
    assert [m["content"] for m in claimed.transcript] == ["one?", "one", "three?"]
    acts.finish(claimed.held, answer="three")
    assert said_by_wire(thread.pk) == ["one?", "one", "three?", "three"]
    assert run.pk == claimed.run.pk


def test_no_number_is_lost_and_every_row_stays_in_the_log():
    thread = talked("one", "two")
    before = log.read(thread.pk, 0)
    at = back(thread, numbers(thread)[0])
    rows = log.read(thread.pk, 0)
    assert rows[:-1] == before
    assert (rows[-1].seq, rows[-1].type) == (at, EventType.THREAD_REWOUND)
    assert [row.seq for row in rows] == list(range(1, at + 1))


def test_a_branch_that_was_left_can_be_taken_up_again():
    thread = talked("one", "two")
    first, second = numbers(thread)[1], numbers(thread)[3]
    back(thread, first)
    acts.finish(acts.claimed(started(thread, text="other?")), answer="other")
    back(thread, second)
    assert (
        acts.transcript(thread)
        == ["human: one?", "ai: one", "human: two?", "ai: two"]
        == [f"{'human' if text.endswith('?') else 'ai'}: {text}" for text in said_by_wire(thread.pk)]
    )


def test_the_state_at_an_earlier_number_is_what_it_was_then():
    thread = talked("one", "two")
    end = thread_end(thread)
    back(thread, 0)
    assert said_by_wire(thread.pk) == [] == acts.transcript(thread)
    assert said_by_wire(thread.pk, end) == ["one?", "one", "two?", "two"]


def thread_end(thread: Thread) -> int:
    return int(Thread.objects.values_list("last_seq", flat=True).get(pk=thread.pk))


def test_values_besides_the_messages_go_back_with_them():
    thread = talked("one")
    with Ledger(thread_ids=[thread.pk]) as ledger:
        locked = ledger.threads[thread.pk]
        ledger.append(locked, NO_RUN, [StateUpdated(values={"topic": "apps"})])
        ledger.set_values(locked, {"topic": "apps"})
    updated = thread_end(thread)
    acts.finish(acts.claimed(started(thread, text="two?")), answer="two")
    back(thread, numbers(thread)[1])
    assert Thread.objects.get(pk=thread.pk).values == {}
    back(thread, updated)
    assert Thread.objects.get(pk=thread.pk).values == {"topic": "apps"}
    assert orjson.loads(state_upto(thread.pk).json())["topic"] == "apps"


def test_nothing_goes_back_while_a_run_is_active():
    thread = talked("one")
    started(thread, text="two?")
    before = acts.stored()
    with pytest.raises(ThreadBusy):
        back(thread, 0)
    assert acts.stored() == before


@pytest.mark.parametrize("to", [-1, 1, 10**9])
def test_only_a_checkpoint_can_be_gone_back_to(to: int):
    thread = talked("one")
    assert Event.objects.get(thread=thread, seq=1).type == EventType.RUN_QUEUED
    with pytest.raises(CheckpointNotFound):
        back(thread, to)


def test_somebody_elses_thread_does_not_go_back():
    thread = talked("one")
    with pytest.raises(ThreadNotFound):
        commit_one(Rewind(thread_id=thread.pk, owner_id=PersonFactory().pk, to=0))


def rolled_back(run: Run) -> None:
    with Ledger(thread_ids=[run.thread_id], run_ids=[run.pk]) as ledger:
        roll_back(ledger, ledger.threads[run.thread_id], ledger.runs[run.pk])


def test_a_run_that_is_rolled_back_leaves_no_trace_and_cannot_be_gone_back_to():
    thread = talked("one")
    run = started(thread, text="two?")
    acts.finish(acts.claimed(run), answer="two")
    rolled_back(run)
    assert acts.transcript(thread) == ["human: one?", "ai: one"]
    taken = numbers(thread)[2:]
    assert history.forgotten(numbers(thread), log.cuts_of(thread.pk)) == set(taken)
    for seq in taken:
        with pytest.raises(CheckpointNotFound):
            back(thread, seq)


def test_rolling_back_a_run_that_began_at_an_earlier_checkpoint_undoes_that_too():
    thread = talked("one", "two")
    run = started(thread, text="three?")
    with Ledger(thread_ids=[thread.pk], run_ids=[run.pk]) as ledger:
        take_back(ledger, ledger.threads[thread.pk], numbers(thread)[1], run_id=run.pk)
        ledger.append(ledger.threads[thread.pk], run.pk, [{"type": "human", "id": "q", "content": "again?"}])
    rolled_back(run)
    assert said_by_wire(thread.pk) == ["one?", "one", "two?", "two"]


def test_a_run_is_rolled_back_in_the_transaction_that_says_its_last_words():
    thread = talked("one")
    run = started(thread, text="two?")
    held = acts.claimed(run)
    with Ledger(thread_ids=[thread.pk], run_ids=[run.pk]) as ledger:
        ledger.append(ledger.threads[thread.pk], held.run_id, [acts.ai("half of tw")])
        roll_back(ledger, ledger.threads[thread.pk], ledger.runs[run.pk])
        ledger.append(ledger.threads[thread.pk], NO_RUN, [{"type": "human", "id": "n", "content": "next?"}])
    assert acts.transcript(thread) == ["human: one?", "ai: one", "human: next?"]
    assert said_by_wire(thread.pk) == ["one?", "one", "next?"]


def test_the_index_of_rare_events_answers_for_the_history():
    from django.db import connection

    thread = talked("one")
    back(thread, 0)
    assert log.cuts_of(thread.pk) == [history.Cut(thread_end(thread), 0, run_id=NO_RUN)]
    if connection.vendor == "sqlite":
        from runs.agent_protocol.state import _HISTORY
        from runs.rows import key_of

        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {_HISTORY}", [key_of(thread.pk), 10])
            assert "event_of_history" in str(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_of_a_rewind_and_a_start_at_the_same_moment_one_comes_first():
    thread = talked("one", "two")
    to = numbers(thread)[1]

    async def both() -> tuple[Any, ...]:
        from django.db import connections

        def closing(work: Any) -> Any:
            try:
                return work()
            except ThreadBusy as busy:
                return busy
            finally:
                connections.close_all()

        return await asyncio.gather(
            asyncio.to_thread(closing, lambda: back(thread, to)),
            asyncio.to_thread(closing, lambda: started(thread, text="three?")),
        )

    rewound, run = asyncio.run(both())
    said = ["human: one?", "ai: one", "human: two?", "ai: two", "human: three?"]
    assert isinstance(run, Run)
    if isinstance(rewound, ThreadBusy):
        assert acts.transcript(thread) == said
    else:
        assert acts.transcript(thread) == [*said[:2], said[-1]]
