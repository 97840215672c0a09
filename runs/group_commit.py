"""One database thread per event loop. What comes in while it is busy is done together in its next turn."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection, connections

from runs.errors import DatabaseLost, RunsError
from runs.lifecycle import Verb, commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
Question = TypeVar("Question")
_LOST = (OperationalError, InterfaceError)
NO_DATABASE = (DatabaseLost, *_LOST)  # what `write`, `call` and `ask` raise when the database is not there
_MOST_PER_TURN = 64
_HOUSEKEEPING_SECONDS = 30.0


@dataclass(slots=True)
class _Waiting:
    """Work that waits for the thread: a function and what it is given, or without a function a verb."""

    answer: asyncio.Future[Any]
    function: Callable[..., Any] | None
    given: tuple[Any, ...]
    together: bool = False  # a question: the function takes all of the turn at once


class GroupCommit:
    """Runs database work of one event loop, one thing at a time.

    In each turn first the questions, those of a kind together, then calls as they came, then the verbs in the order
    given, in one transaction.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: deque[_Waiting] = deque()
        self._done: deque[tuple[Sequence[_Waiting], Sequence[Any]]] = deque()
        self._under_way = self._answering = self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._housekeeping_at = time.monotonic() + _HOUSEKEEPING_SECONDS

    def write(self, verb: Verb) -> asyncio.Future[Any]:
        """Apply a verb. The future gives its result or raises its refusal, DatabaseLost or the database's error.

        Order is kept: a verb written before another is applied before it, awaited or not.
        """
        return self._add(_Waiting(self._loop.create_future(), None, (verb,)))

    async def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run any synchronous database work on the same thread."""
        result: Result = await self._add(_Waiting(self._loop.create_future(), function, arguments))
        return result

    async def ask(
        self, function: Callable[[Sequence[Question]], Sequence[Result | Exception]], one: Question
    ) -> Result:
        """As `call`, for work that costs less done for many at once: `function` gets every question of the turn.

        It gives one outcome for each, in their order; an exception is raised to whom it belongs.
        """
        result: Result = await self._add(_Waiting(self._loop.create_future(), function, (one,), together=True))
        return result

    async def close(self) -> None:
        """Do what was given so far, then give the connection back."""
        while self._under_way:
            await self._idle.wait()
        self._closed = True
        await self._loop.run_in_executor(self._thread, connections.close_all)
        self._thread.shutdown(wait=False)

    def _add(self, waiting: _Waiting) -> asyncio.Future[Any]:
        if self._closed:
            raise RuntimeError("this database thread has ended")
        self._waiting.append(waiting)
        if not self._under_way:
            self._under_way = True
            self._idle.clear()
            self._loop.call_soon(self._send)  # whatever this turn of the loop still adds rides along
        return waiting.answer

    def _send(self) -> None:
        turn = [self._waiting.popleft() for _each in range(min(len(self._waiting), _MOST_PER_TURN))]
        self._thread.submit(self._work, turn)

    # --- on the loop: answers -----------------------------------------------------------------------------------
    def _answer(self) -> None:
        self._answering = False  # first: what the thread adds from now on rings again
        turn_is_over = False
        while self._done:
            part, outcomes = self._done.popleft()
            turn_is_over = turn_is_over or not part
            for waiting, outcome in zip(part, outcomes, strict=True):
                if waiting.answer.done():
                    continue
                if isinstance(outcome, BaseException):
                    waiting.answer.set_exception(outcome)
                else:
                    waiting.answer.set_result(outcome)
        if not turn_is_over:
            return
        if self._waiting:
            self._send()
        else:
            self._under_way = False
            self._idle.set()

    # --- on the thread ------------------------------------------------------------------------------------------
    def _work(self, turn: Sequence[_Waiting]) -> None:
        self._housekeep()
        for part, do in _parts(turn):
            try:
                outcomes = do()
            except BaseException as fault:  # noqa: BLE001 - every waiting future must get an answer
                if isinstance(fault, _LOST):
                    connection.close()  # a broken connection would fail every later call too
                outcomes = [fault] * len(part)
            self._hand_back(part, outcomes)
        self._hand_back((), ())

    def _hand_back(self, part: Sequence[_Waiting], outcomes: Sequence[Any]) -> None:
        """Answers that come before the loop has taken the last ones do not wake it again."""
        self._done.append((part, outcomes))
        if not self._answering:
            self._answering = True
            self._loop.call_soon_threadsafe(self._answer)

    def _housekeep(self) -> None:
        if time.monotonic() >= self._housekeeping_at:
            self._housekeeping_at = time.monotonic() + _HOUSEKEEPING_SECONDS
            with suppress(*_LOST):
                close_old_connections()


def _parts(turn: Sequence[_Waiting]) -> Iterator[tuple[Sequence[_Waiting], Callable[[], Sequence[Any]]]]:
    """What is done one after the other, each with the function that gives an outcome for everything in it."""
    kinds: dict[Any, list[_Waiting]] = {}
    for waiting in turn:
        if waiting.together:
            kinds.setdefault(waiting.function, []).append(waiting)
    for function, questions in kinds.items():
        yield questions, partial(_answers, function, [question.given[0] for question in questions])
    for waiting in turn:
        if not (waiting.together or waiting.function is None or waiting.answer.cancelled()):
            yield [waiting], partial(_result, waiting.function, waiting.given)
    verbs = [waiting for waiting in turn if waiting.function is None]
    if verbs:
        yield verbs, partial(_commit, [waiting.given[0] for waiting in verbs])


def _result(function: Callable[..., Any], given: Sequence[Any]) -> list[Any]:
    return [function(*given)]


def _answers(function: Callable[[Sequence[Any]], Sequence[Any]], questions: Sequence[Any]) -> Sequence[Any]:
    try:
        return function(questions)
    except _LOST:
        raise
    except Exception as fault:  # noqa: BLE001 - raised to the one it belongs to
        if len(questions) == 1:
            return [fault]
        return [answer for question in questions for answer in _answers(function, [question])]


def _commit(verbs: list[Verb]) -> list[Any]:
    """Results or exceptions, one for each verb. What fails together is tried alone, so that neighbours survive."""
    try:
        return commit(verbs)
    except _LOST as fault:
        # The COMMIT may have arrived: doing it again could append twice. The lease decides who continues.
        connection.close()
        return [DatabaseLost(str(fault))] * len(verbs)
    except Exception as fault:  # noqa: BLE001 - handed to the verb it belongs to
        if len(verbs) == 1:
            return [fault]
        if not isinstance(fault, RunsError):
            logger.warning("a batch of %d verbs failed (%s); trying each alone", len(verbs), fault)
        return [outcome for verb in verbs for outcome in _commit([verb])]
