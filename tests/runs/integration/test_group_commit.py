"""Verbs that share transactions: order, neighbours of a bad one, and connections that break."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from runs.errors import DatabaseLost, Fenced
from runs.group_commit import GroupCommit
from runs.lifecycle import Held, OpenThread, Progress, commit, commit_one
from runs.models import Event, Run, Thread
from tests.runs.acts import ai, child_verb, claimed, lose_lease, say, stored, transcript
from tests.runs.factories import ThreadFactory, started
from tests.runs.invariants import assert_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from runs.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class Accident:
    """A verb in whose middle something happens."""

    happen: Callable[[], Any]

    def thread_ids(self) -> tuple[UUID, ...]:
        return ()

    run_ids = thread_ids

    def apply(self, ledger: Ledger) -> None:
        self.happen()


def _lose_the_connection() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    raise OperationalError("disk I/O error")


def _running() -> tuple[Run, Held]:
    run = started()
    return run, claimed(run)


async def _outcomes(*answers: asyncio.Future[Any]) -> list[Any]:
    return await asyncio.gather(*answers, return_exceptions=True)


async def test_verbs_are_applied_in_the_order_they_were_given_awaited_or_not(database):
    run, held = await database.call(_running)
    answers = [database.write(Progress(held=held, entries=[ai(str(number))])) for number in range(150)]
    await asyncio.gather(*answers)
    said = await database.call(transcript, run.thread_id)
    assert said[1:] == [f"ai: {number}" for number in range(150)]
    moments = await database.call(lambda: Event.objects.filter(type="message").values("at").distinct().count())
    assert moments == 1 + 3  # the question, and 150 verbs in three transactions of at most 64


async def test_a_refused_verb_leaves_its_neighbours_alone(database):
    run, old = await database.call(_running)
    await database.call(lose_lease, run)
    new = await database.call(claimed, run)
    outcomes = await _outcomes(
        *(
            database.write(Progress(held=held, entries=[ai(text)]))
            for held, text in ((new, "a"), (old, "b"), (new, "c"))
        )
    )
    assert [type(outcome) for outcome in outcomes] == [bool, Fenced, bool]
    assert (await database.call(transcript, run.thread_id))[1:] == ["ai: a", "ai: c"]


async def test_a_verb_the_database_refuses_leaves_its_neighbours_alone(database):
    run, held = await database.call(_running)
    owner_id = await database.call(lambda: run.thread.owner_id)
    outcomes = await _outcomes(
        database.write(Progress(held=held, entries=[ai("a")])),
        database.write(OpenThread(owner_id=owner_id, thread_id=run.thread_id)),
        database.write(Progress(held=held, entries=[ai("b")])),
    )
    assert [type(outcome) for outcome in outcomes] == [bool, IntegrityError, bool]
    assert (await database.call(transcript, run.thread_id))[1:] == ["ai: a", "ai: b"]


async def test_a_verb_that_fails_by_our_own_mistake_leaves_its_neighbours_alone(database):
    run, held = await database.call(_running)
    outcomes = await _outcomes(
        database.write(Progress(held=held, entries=[ai("a")])),
        database.write(Accident(happen=lambda: {}["missing"])),
        database.write(Progress(held=held, entries=[ai("b")])),
    )
    assert [type(outcome) for outcome in outcomes] == [bool, KeyError, bool]
    assert (await database.call(transcript, run.thread_id))[1:] == ["ai: a", "ai: b"]


async def test_one_call_that_is_dispatched_twice_in_a_commit_starts_one_child(database):
    run, held = await database.call(_running)
    (one, _), (two, _) = await asyncio.gather(database.write(child_verb(held)), database.write(child_verb(held)))
    assert one.pk == two.pk
    await database.call(assert_whole, [run.thread_id, one.thread_id])


async def test_a_connection_lost_before_the_commit_writes_nothing_and_says_that_nobody_knows(database):
    _run, held = await database.call(_running)
    before = await database.call(stored)
    outcomes = await _outcomes(
        database.write(Progress(held=held, entries=[ai("a")])),
        database.write(Accident(happen=_lose_the_connection)),
        database.write(Progress(held=held, entries=[ai("b")])),
    )
    assert [type(outcome) for outcome in outcomes] == [DatabaseLost] * 3
    assert await database.call(stored) == before


async def test_a_connection_lost_after_the_commit_appends_nothing_twice(database):
    run, held = await database.call(_running)

    def lost_once_committed() -> None:
        def lose() -> None:
            raise OperationalError("server closed the connection unexpectedly")

        transaction.on_commit(lose)

    outcomes = await _outcomes(
        database.write(Progress(held=held, entries=[ai("a")])),
        database.write(Accident(happen=lost_once_committed)),
    )
    assert [type(outcome) for outcome in outcomes] == [DatabaseLost] * 2
    assert (await database.call(transcript, run.thread_id))[1:] == ["ai: a"]


async def test_the_next_write_and_the_next_call_find_a_working_connection(database):
    run, held = await database.call(_running)
    await _outcomes(database.write(Accident(happen=_lose_the_connection)))
    await database.write(Progress(held=held, entries=[ai("a")]))
    with pytest.raises(OperationalError):
        await database.call(_lose_the_connection)
    assert (await database.call(transcript, run.thread_id))[1:] == ["ai: a"]


async def test_a_verb_whose_caller_no_longer_waits_is_applied_all_the_same(database):
    run, held = await database.call(_running)
    database.write(Progress(held=held, entries=[ai("a")])).cancel()
    await database.write(Progress(held=held, entries=[ai("b")]))
    assert (await database.call(transcript, run.thread_id))[1:] == ["ai: a", "ai: b"]


async def test_closing_writes_what_was_given_before(database):
    run, held = await database.call(_running)
    other = GroupCommit("other-db")
    answers = [other.write(Progress(held=held, entries=[ai(str(number))])) for number in range(100)]
    await other.close()
    assert all(answer.done() for answer in answers)
    assert len(await database.call(transcript, run.thread_id)) == 101


async def test_questions_of_one_turn_are_answered_together_each_with_its_own_outcome(database):
    asked: list[list[int]] = []

    def halves(numbers: Sequence[int]) -> list[int | ValueError]:
        asked.append(list(numbers))
        return [ValueError(f"{number} is odd") if number % 2 else number // 2 for number in numbers]

    outcomes = await _outcomes(*(database.ask(halves, number) for number in range(4)))
    assert asked == [[0, 1, 2, 3]]
    assert [str(outcome) for outcome in outcomes] == ["0", "1 is odd", "1", "3 is odd"]


async def test_a_question_that_fails_leaves_its_neighbours_alone(database):
    def inverses(numbers: Sequence[int]) -> list[float]:
        return [1 / number for number in numbers]

    outcomes = await _outcomes(*(database.ask(inverses, number) for number in (1, 0, 2)))
    assert [type(outcome) for outcome in outcomes] == [float, ZeroDivisionError, float]


async def test_questions_that_lose_the_connection_are_not_asked_again_and_the_next_one_finds_a_new_one(database):
    asked = []

    def lose(questions: Sequence[str]) -> list[Any]:
        asked.extend(questions)
        _lose_the_connection()
        return []

    outcomes = await _outcomes(*(database.ask(lose, name) for name in "ab"))
    assert [type(outcome) for outcome in outcomes] == [OperationalError] * 2
    assert asked == ["a", "b"]
    assert await database.ask(lambda names: [Run.objects.filter(agent=name).count() for name in names], "nobody") == 0


async def test_a_call_that_nobody_waits_for_any_more_is_not_begun(database):
    begun = []
    given_up = asyncio.ensure_future(database.call(begun.append, "given up"))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(database.call(begun.append, "wanted"), given_up, return_exceptions=True)
    assert begun == ["wanted"]


async def test_after_closing_nothing_is_taken_that_nobody_would_answer():
    other = GroupCommit("other-db")
    await other.close()
    with pytest.raises(RuntimeError):
        await other.call(list)


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_fails_while_it_waits_for_its_locks_leaves_no_transaction_open():
    run, held = _running()

    def refuse(execute: Any, statement: str, parameters: Any, many: bool, context: Any) -> Any:
        if "runs_thread" in statement:
            raise OperationalError("canceling statement due to lock timeout")
        return execute(statement, parameters, many, context)

    with connection.execute_wrapper(refuse), pytest.raises(OperationalError):
        commit_one(Progress(held=held, entries=[ai("a")]))
    assert not connection.in_atomic_block
    say(held, "b")
    assert transcript(run.thread)[1:] == ["ai: b"]


@pytest.mark.django_db
def test_a_refused_verb_says_so_in_its_place():
    thread, run = ThreadFactory(), started()
    held = Held(run.pk, run.thread_id, 12345)
    refused, made = commit([Progress(held=held, entries=[ai("a")]), OpenThread(owner_id=thread.owner_id)])
    assert isinstance(refused, Fenced)
    assert Thread.objects.filter(pk=made.pk).exists()
