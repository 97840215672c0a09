"""The way to one model: how many calls at the same time, how often a failed one is made again, when it is left alone.

One gate for each model and event loop. What it holds is the worker process's own knowledge; the configured number of
calls at the same time is shared out among the workers that live.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from engine.errors import ModelResting, asked_wait_seconds, explain_model_error
from engine.ports import Pause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from engine.errors import ModelFault
    from engine.ports import Pauses

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

MAX_RETRIES: Final = 2
FIRST_BACKOFF_SECONDS: Final = 0.5
MAX_BACKOFF_SECONDS: Final = 8.0
MAX_OBEYED_WAIT_SECONDS: Final = 60.0  # a server that wants more is told to the person instead
FAILURES_TO_REST: Final = 5  # of the server itself, in a row, whoever asked it
REST_SECONDS: Final = 60.0
FIRST_SILENCE_SECONDS: Final = 600.0  # before an answer: a model may think for long
SILENCE_SECONDS: Final = 120.0  # within an answer


class ModelGate:
    """Lets calls of one model through. Not for use from two event loops."""

    def __init__(
        self,
        name: str = "",
        *,
        max_concurrency: int | None = None,
        max_retries: int = MAX_RETRIES,
        silence_seconds: float | None = None,
        first_backoff_seconds: float = FIRST_BACKOFF_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`silence_seconds` is the longest silence before and within an answer; None: the defaults above."""
        self.first_silence_seconds = silence_seconds or FIRST_SILENCE_SECONDS
        self.silence_seconds = silence_seconds or SILENCE_SECONDS
        self.places = Places(max_concurrency)
        self._max_retries = max_retries
        self._first_backoff_seconds = first_backoff_seconds
        self._breaker = Breaker(name, clock)
        self.name = name

    async def call(self, ask: Callable[[], Awaitable[Result]], *, pause: Pauses) -> Result:
        """What `ask` gives, asked again where that may help. While it waits for whatever, it holds no place.

        Raises what the last attempt raised, or ModelResting without having asked. Source: reference
        deerflow-subagents.md §6.5.
        """
        attempt = 0
        while True:
            async with self.places.one(pause):
                try:
                    return await self._breaker.watch(ask)
                except ModelResting:
                    raise
                except Exception as error:
                    wait_seconds = self._wait_seconds(error, attempt)
                    if wait_seconds is None:
                        raise
            attempt += 1
            async with pause(Pause.RETRY):
                await asyncio.sleep(wait_seconds)

    def _wait_seconds(self, error: Exception, attempt: int) -> float | None:
        """How long to wait before the next attempt; None when there shall be none."""
        fault = explain_model_error(error)
        if not fault.passes or attempt >= self._max_retries or self._breaker.is_open:
            return None
        asked = asked_wait_seconds(error)
        if asked is not None and asked > MAX_OBEYED_WAIT_SECONDS:
            return None
        wait = backoff_seconds(attempt, self._first_backoff_seconds) if asked is None else asked
        logger.info(
            "model %s: %s: attempt %d of %d follows in %.1f s",
            self.name,
            fault.code,
            attempt + 2,
            self._max_retries + 1,
            wait,
        )
        return wait


class Breaker:
    """Closed: everybody may ask. Open: nobody for a while, then one probe, which closes it or opens it again."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name, self._clock = name, clock
        self._failures = 0
        self._opened_at = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        return self._failures >= FAILURES_TO_REST

    async def watch(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        """Ask, and learn from how that ends. Raises ModelResting while the model is left alone."""
        probe = self._begin()
        try:
            result = await ask()
        except Exception as error:
            self._learn(explain_model_error(error))
            raise
        else:
            self._close()
            return result
        finally:
            if probe:
                self._probing = False

    def _begin(self) -> bool:
        """Whether this call is the probe."""
        if not self.is_open:
            return False
        left = self._opened_at + REST_SECONDS - self._clock()
        if left > 0 or self._probing:
            raise ModelResting(self.name, self._failures, max(left, 1))
        self._probing = True
        return True

    def _learn(self, fault: ModelFault) -> None:
        if not fault.server:
            if fault.code != "model_stream_cut":  # says nothing about the server: it may be the way to it
                self._close()
            return
        self._failures += 1
        if self.is_open:
            self._opened_at = self._clock()
            logger.warning("model %s failed %d times in a row and is left alone", self.name, self._failures)

    def _close(self) -> None:
        if self.is_open:
            logger.warning("model %s answers again", self.name)
        self._failures = 0


class Places:
    """How many calls may be under way at the same time. None: as many as there are."""

    def __init__(self, limit: int | None) -> None:
        self._limit, self._workers = limit, 1
        self._used = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def share_among(self, workers: int) -> None:
        """So many worker processes share the limit evenly; each has one place at least."""
        self._workers = max(workers, 1)
        self._let_in()

    @property
    def limit(self) -> int | None:
        """This process's share."""
        return None if self._limit is None else max(self._limit // self._workers, 1)

    @asynccontextmanager
    async def one(self, pause: Pauses) -> AsyncIterator[None]:
        """A place, in the order of asking."""
        held = not (self._full or self._waiting)
        self._used += held
        try:
            if not held:
                async with pause(Pause.MODEL):
                    await self._wait()
                    held = True  # also when the end of the pause is cancelled
            yield
        finally:
            if held:
                self._used -= 1
                self._let_in()

    @property
    def _full(self) -> bool:
        limit = self.limit
        return limit is not None and self._used >= limit

    async def _wait(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # granted in the same moment
                self._used -= 1
            elif place in self._waiting:
                self._waiting.remove(place)
            self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and not self._full:
            place = self._waiting.popleft()
            if not place.done():
                self._used += 1
                place.set_result(None)


def backoff_seconds(attempt: int, first_seconds: float = FIRST_BACKOFF_SECONDS) -> float:
    """Half a second, doubled with each attempt, and up to a quarter less so that clients do not move in step."""
    longest = min(first_seconds * 2.0**attempt, MAX_BACKOFF_SECONDS)
    return longest * (1 - random.random() / 4)
