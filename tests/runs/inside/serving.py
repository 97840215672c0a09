"""The product beside a test: the real ASGI application under uvicorn, and a worker, each on a loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

import uvicorn

from deerflow_site.asgi import application
from runs.agent_protocol import access
from runs.relay import relay
from runs.worker import plans
from runs.worker.host import RunHost
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class WebServer:
    """`deerflow_site.asgi` under uvicorn in a thread."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._listener.getsockname()[1]
        config = uvicorn.Config(
            self._application,
            interface="asgi3",
            http="httptools",
            ws="none",
            lifespan="on",
            log_level="error",
            access_log=False,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/langgraph"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(PATIENCE_SECONDS):
            raise RuntimeError("the web server did not start")
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE_SECONDS)
        self._listener.close()

    async def ask(self, function: Callable[[], Any]) -> Any:
        """What a function says that runs on the server's loop."""

        async def asked() -> Any:
            return function()

        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked(), self._loop))

    async def followed_threads(self) -> int:
        return int(await self.ask(lambda: len(relay()._feeds)))

    async def pending_tasks(self) -> int:
        return int(await self.ask(lambda: len(asyncio.all_tasks())))

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return

        async def noticed(message: Any) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._loop = asyncio.get_running_loop()
                self._ready.set()
            elif message["type"] == "lifespan.shutdown.complete":
                # An open connection would keep the test database from being removed.
                await access.close_database()
            await send(message)

        await application(scope, receive, noticed)


class Worker:
    """A RunHost in a thread."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._host: RunHost | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        if self._host is not None:
            self._host.wake()
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._host = RunHost(slots=100, lease_seconds=8, max_attempts=3, grace_seconds=0.1, name="wire-worker")
        await self._host.serve(stop_asked=self._stopping.is_set)
        await plans.close_models()


async def on_loop(work: Coroutine[Any, Any, Any], seconds: float = PATIENCE_SECONDS) -> Any:
    async with asyncio.timeout(seconds):
        return await work
