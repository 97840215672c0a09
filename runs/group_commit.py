"""One database thread per event loop. Verbs that come in while a transaction is under way share the next one."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection, connections

from runs.errors import DatabaseLost, RunsError
from runs.lifecycle import Verb, commit

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
_LOST = (OperationalError, InterfaceError)
NO_DATABASE = (DatabaseLost, *_LOST)  # what `write` and `call` raise when the database is not there
_MOST_PER_COMMIT = 64
_HOUSEKEEPING_SECONDS = 30.0


@dataclass(slots=True)
class _Waiting:
    verb: Verb
    answer: asyncio.Future[Any]


class GroupCommit:
    """Runs database work of one event loop, one thing at a time: verbs in the order given, calls as they come."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: list[_Waiting] = []
        self._under_way = False
        self._written = asyncio.Event()
        self._written.set()
        self._housekeeping_at = time.monotonic() + _HOUSEKEEPING_SECONDS

    def write(self, verb: Verb) -> asyncio.Future[Any]:
        """Apply a verb. The future gives its result or raises its refusal, DatabaseLost or the database's error.

        Order is kept: a verb written before another is applied before it, awaited or not.
        """
        waiting = _Waiting(verb, self._loop.create_future())
        self._waiting.append(waiting)
        if not self._under_way:
            self._under_way = True
            self._written.clear()
            self._loop.call_soon(self._send)  # whatever this turn of the loop still adds rides along
        return waiting.answer

    async def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run any synchronous database work on the same thread."""
        return await self._loop.run_in_executor(self._thread, self._called, function, arguments)

    async def close(self) -> None:
        """Write what was given so far, then give the connection back."""
        await self._written.wait()
        await self._loop.run_in_executor(self._thread, connections.close_all)
        self._thread.shutdown(wait=False)

    def _called(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        self._housekeep()
        try:
            return function(*arguments)
        except _LOST:
            connection.close()  # a broken connection would fail every later call too
            raise

    def _send(self) -> None:
        batch, self._waiting = self._waiting[:_MOST_PER_COMMIT], self._waiting[_MOST_PER_COMMIT:]
        self._thread.submit(self._work, batch)

    def _work(self, batch: list[_Waiting]) -> None:
        self._housekeep()
        try:
            outcomes = _commit([waiting.verb for waiting in batch])
        except BaseException as fault:  # noqa: BLE001 - every waiting future must get an answer
            outcomes = [fault] * len(batch)
        self._loop.call_soon_threadsafe(self._answer, batch, outcomes)

    def _answer(self, batch: list[_Waiting], outcomes: list[Any]) -> None:
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(outcome, BaseException):
                waiting.answer.set_exception(outcome)
            else:
                waiting.answer.set_result(outcome)
        if self._waiting:
            self._send()
        else:
            self._under_way = False
            self._written.set()

    def _housekeep(self) -> None:
        if time.monotonic() >= self._housekeeping_at:
            self._housekeeping_at = time.monotonic() + _HOUSEKEEPING_SECONDS
            close_old_connections()


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
