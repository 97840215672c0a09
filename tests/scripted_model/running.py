"""The server beside a test: in a thread of the test's own process, on a free port."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Self

from tests.patience import PATIENCE_SECONDS
from tests.scripted_model.calls import Ledger, ModelCall
from tests.scripted_model.choice import ReplyChoice, Responder
from tests.scripted_model.plan import Planner
from tests.scripted_model.server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from tests.scripted_model.reply import Reply

START_TIMEOUT_SECONDS = 10.0


class ScriptedModel:
    """A running server.

        with ScriptedModel() as model:
            model.replies(["First answer.", Reply(calls=(ToolCall(name="ls"),))])
            ChatOpenAI(base_url=model.url, …)

    Other processes may use `url` too. `plan=True` answers unscripted requests as a plausible lead or
    subagent does, at `rate_per_second` pieces of text.
    """

    def __init__(self, *, plan: bool = False, rate_per_second: float = 0.0) -> None:
        self.ledger = Ledger()
        self.choice = ReplyChoice(planner=Planner(rate_per_second=rate_per_second) if plan else None)
        self._server = ScriptedServer(self.choice, self.ledger)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="scripted-model", daemon=True)
        self._ready = threading.Event()
        self._stopping: asyncio.Event | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_SECONDS) or not self.port:
            raise RuntimeError("the scripted model server did not start")
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._stopping:
            self._in_loop(self._stopping.set)
        self._thread.join(START_TIMEOUT_SECONDS)

    @property
    def root_url(self) -> str:
        """Where `/stats`, `/log`, `/reset` and `/gates` are."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"{self.root_url}/v1"

    @property
    def requests(self) -> list[ModelCall]:
        """Every call since the start or the last reset, oldest first."""
        return list(self.ledger.calls)

    def calls_of(self, script_id: str) -> list[ModelCall]:
        return [call for call in self.requests if call.script_id == script_id]

    @property
    def in_flight(self) -> int:
        return self.ledger.in_flight

    @property
    def max_in_flight(self) -> int:
        return self.ledger.max_in_flight

    def replies(self, replies: Iterable[Reply | str]) -> None:
        """Queue answers for unscripted requests, in the order those arrive; an empty queue answers "ok"."""
        self.choice.enqueue(replies)

    def responder(self, responder: Responder) -> Responder:
        """Ask this function about each unscripted request. Usable as a decorator.

        It runs in the server's thread; answering None leaves the request to the queue.
        """
        self.choice.responder = responder
        return responder

    def open_gate(self, name: str) -> None:
        """Let the replies go on that wait for this gate, and those that will come to it."""
        self._in_loop(lambda: self._server.open_gate(name))

    def reset(self) -> None:
        self._in_loop(self._server.reset)

    def wait_for(self, holds: Callable[[ScriptedModel], bool], timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """Block until the condition over calls and counters holds. Raises TimeoutError.

        Looked at whenever a call begins, ends or goes away. From a coroutine use `until`.
        """
        if not self.ledger.wait_for(lambda: holds(self), timeout_seconds):
            raise TimeoutError(f"not within {timeout_seconds} s; the model saw {self.ledger.counters()}")

    async def until(self, holds: Callable[[ScriptedModel], bool], timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """As `wait_for`, without blocking the event loop."""
        await asyncio.to_thread(self.wait_for, holds, timeout_seconds)

    def _in_loop(self, action: Callable[[], None]) -> None:
        """Run in the server's thread and wait until it is done."""
        loop, done = self._loop, threading.Event()
        if loop is None or loop.is_closed():
            return

        def act() -> None:
            action()
            done.set()

        loop.call_soon_threadsafe(act)
        done.wait(START_TIMEOUT_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            runner, self.port = await self._server.listen(0)
        finally:
            self._ready.set()
        try:
            await self._stopping.wait()
        finally:
            await runner.cleanup()
