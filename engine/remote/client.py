"""Tasks on other Agent Protocol servers, through the LangGraph SDK, which is imported when the first one is needed."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

from engine.config.connections import EnvKeyPolicy
from engine.reasons import Reason
from engine.remote import faults
from engine.remote.answers import Observed, TaskStatus, asks_of, error_of, result_of, run_status, usable_id
from engine.remote.faults import FaultKind, RemoteFault
from engine.remote.keys import headers_for, without_secrets
from engine.text import clean, shorten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    import httpx
    from langgraph_sdk.client import LangGraphClient

    from engine.outbound.policy import Policy

_MOST_AT_ONCE: Final = 8  # requests to one host
_LONGEST_SAID: Final = 300
_SECONDS: Final = {"connect": 5.0, "read": 15.0, "write": 15.0, "pool": 20.0}
_GONE: Final = frozenset({FaultKind.NOT_FOUND, FaultKind.REJECTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAgent:
    """What is needed to call an agent elsewhere. `headers` are in the clear and in no repr."""

    name: str
    graph_id: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    use_env_key: EnvKeyPolicy = EnvKeyPolicy.AUTO
    webhook: str | None = None
    update_strategy: Literal["interrupt", "enqueue"] = "interrupt"

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


class RemoteServers:
    """The clients of one event loop. Every method raises RemoteFault, whose sentence holds no header's value."""

    def __init__(
        self,
        policy: Callable[[], Policy],
        environ: Mapping[str, str],
        *,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
    ) -> None:
        self._policy = policy
        self._environ = environ
        self._make_transport = transport or self._checked_transport
        self._transport: httpx.AsyncBaseTransport | None = None
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_MOST_AT_ONCE))

    async def start(
        self, agent: RemoteAgent, text: str, *, thread_id: UUID, metadata: Mapping[str, Any], again: bool = False
    ) -> Observed:
        """Begin a task on a thread of its own. `again`: what an earlier attempt may have begun is found."""
        async with self._client(agent) as client:
            with _told(agent):
                made = await client.threads.create(
                    thread_id=str(thread_id), if_exists="do_nothing", metadata={**metadata, "graph_id": agent.graph_id}
                )
            thread = _thread_id(made, agent)
            if again and (newest := await _newest_run(client, agent, thread)) is not None:
                return await _observed(client, agent, thread, newest)
            return await _run(client, agent, thread, text, metadata)

    async def status(self, agent: RemoteAgent, thread_id: str, run_id: str) -> Observed:
        """How a task stands now, with what it came to."""
        async with self._client(agent) as client:
            return await _looked_up(client, agent, thread_id, run_id)

    async def update(self, agent: RemoteAgent, thread_id: str, text: str, *, metadata: Mapping[str, Any]) -> Observed:
        """A new run on the task's thread with all of its history; what runs there is interrupted, or waited for."""
        async with self._client(agent) as client:
            return await _run(client, agent, thread_id, text, metadata, strategy=agent.update_strategy)

    async def cancel(self, agent: RemoteAgent, thread_id: str, run_id: str) -> Observed:
        """Stop a task. One that has ended already comes back as it ended."""
        async with self._client(agent) as client:
            before = await _looked_up(client, agent, thread_id, run_id)
            if before.status not in {TaskStatus.PENDING, TaskStatus.RUNNING}:
                return before
            try:
                with _told(agent):
                    await client.runs.cancel(before.thread_id, before.run_id, wait=False, action="interrupt")
            except RemoteFault as fault:
                if fault.kind not in _GONE:
                    raise
                after = await _looked_up(client, agent, thread_id, before.run_id)
                if after.status in {TaskStatus.PENDING, TaskStatus.RUNNING}:
                    raise
                return after
            return Observed(thread_id=before.thread_id, run_id=before.run_id, status=TaskStatus.CANCELLED)

    async def probe(self, agent: RemoteAgent) -> None:
        """Whether tasks could be started: somebody answers, takes the credentials and knows the graph."""
        async with self._client(agent) as client:
            found = await _assistants(client, agent)
            if not isinstance(found, list):
                raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.NO_LIST))
            if not found:
                raise RemoteFault(FaultKind.UNKNOWN_GRAPH, host=agent.host, graph_id=agent.graph_id)

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    @asynccontextmanager
    async def _client(self, agent: RemoteAgent) -> AsyncIterator[LangGraphClient]:
        """A client for one operation; connections are shared by all. What is said of faults is clean of secrets."""
        headers = headers_for(agent.url, agent.headers, agent.use_env_key, self._environ)
        async with self._turns[agent.host]:
            client = self._made(agent, headers)
            try:
                yield client
            except RemoteFault as fault:
                raise _without_secrets(fault, headers) from None

    def _made(self, agent: RemoteAgent, headers: Mapping[str, str]) -> LangGraphClient:
        import httpx
        import langgraph_sdk
        from langgraph_sdk.client import LangGraphClient

        if self._transport is None:
            self._transport = self._make_transport()
        own = {"user-agent": f"langgraph-sdk-py/{langgraph_sdk.__version__}", "accept-encoding": "identity", **headers}
        try:
            http = httpx.AsyncClient(
                base_url=agent.url,
                transport=self._transport,
                timeout=httpx.Timeout(**_SECONDS),
                headers=own,
                trust_env=False,
            )
        except (httpx.InvalidURL, ValueError, TypeError) as fault:
            raise RemoteFault(FaultKind.CONFIGURATION, why=Reason(faults.NOT_A_URL)) from fault
        return LangGraphClient(http)

    def _checked_transport(self) -> httpx.AsyncBaseTransport:
        from engine.remote.transport import CheckedTransport

        return CheckedTransport(self._policy)


@contextmanager
def _told(agent: RemoteAgent) -> Iterator[None]:
    """Turns what the SDK raises into RemoteFault."""
    import httpx
    import orjson

    try:
        yield
    except httpx.HTTPStatusError as fault:
        raise _of_status(fault, agent) from fault
    except orjson.JSONDecodeError as fault:
        raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.NOT_JSON)) from fault
    except (httpx.InvalidURL, httpx.HTTPError, UnicodeError, TypeError) as fault:
        raise RemoteFault(FaultKind.CONFIGURATION, why=type(fault).__name__) from fault


async def _run(
    client: LangGraphClient,
    agent: RemoteAgent,
    thread_id: str,
    text: str,
    metadata: Mapping[str, Any],
    *,
    strategy: Literal["interrupt", "enqueue"] | None = None,
) -> Observed:
    message: Any = {"role": "user", "content": clean(text)}
    with _told(agent):
        run = await client.runs.create(
            thread_id,
            agent.graph_id,
            input={"messages": [message]},
            metadata=dict(metadata),
            multitask_strategy=strategy,
            webhook=agent.webhook,
        )
    run_id, status = _checked_run(run, agent)
    return Observed(thread_id=thread_id, run_id=run_id, status=status)


async def _looked_up(client: LangGraphClient, agent: RemoteAgent, thread_id: str, run_id: str) -> Observed:
    with _told(agent):
        run = await client.runs.get(thread_id, run_id)
    _run_id, status = _checked_run(run, agent)
    if status is TaskStatus.INTERRUPTED:  # perhaps only because a newer run took its place
        run = await _newest_run(client, agent, thread_id) or run
    return await _observed(client, agent, thread_id, run)


async def _observed(client: LangGraphClient, agent: RemoteAgent, thread_id: str, run: Any) -> Observed:
    """A run with what its thread says besides: whether it waits, what came of it, why it failed."""
    run_id, status = _checked_run(run, agent)
    if status in {TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.TIMEOUT}:
        return Observed(thread_id=thread_id, run_id=run_id, status=status)
    with _told(agent):
        thread: Any = await client.threads.get(thread_id)
    if not isinstance(thread, dict):
        raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.NO_THREAD))
    asked = thread.get("status") == "interrupted" and bool(thread.get("interrupts"))
    if asked and status in {TaskStatus.SUCCESS, TaskStatus.INTERRUPTED}:
        return Observed(thread_id=thread_id, run_id=run_id, status=TaskStatus.WAITING, asks=asks_of(thread))
    if status is TaskStatus.SUCCESS:
        return Observed(thread_id=thread_id, run_id=run_id, status=status, result=result_of(thread))
    if status is TaskStatus.ERROR:
        why = error_of(run.get("error")) or error_of(thread.get("error"))
        return Observed(thread_id=thread_id, run_id=run_id, status=status, error=why)
    return Observed(thread_id=thread_id, run_id=run_id, status=status)


async def _newest_run(client: LangGraphClient, agent: RemoteAgent, thread_id: str) -> Any:
    with _told(agent):
        runs: Any = await client.runs.list(thread_id, limit=1)
    return runs[0] if isinstance(runs, list) and runs else None


async def _assistants(client: LangGraphClient, agent: RemoteAgent) -> Any:
    """The assistants of this name, at most one. A server that has no such addresses is asked for threads instead."""
    try:
        with _told(agent):
            if _is_uuid(agent.graph_id):
                return [await client.assistants.get(agent.graph_id)]
            return await client.assistants.search(graph_id=agent.graph_id, limit=1)
    except RemoteFault as fault:
        if fault.kind is not FaultKind.NOT_FOUND:
            raise
    if _is_uuid(agent.graph_id):
        raise RemoteFault(FaultKind.UNKNOWN_GRAPH, host=agent.host, graph_id=agent.graph_id)
    try:
        with _told(agent):
            return [await client.threads.search(limit=1)]
    except RemoteFault as fault:
        if fault.kind is not FaultKind.NOT_FOUND:
            raise
    raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.NO_LIST))


def _checked_run(run: Any, agent: RemoteAgent) -> tuple[str, TaskStatus]:
    if run is None:
        raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.EMPTY))
    if isinstance(run, dict):
        run_id, status = usable_id(run.get("run_id")), run_status(run)
        if run_id is not None and status is not None:
            return run_id, status
    raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.NO_RUN))


def _thread_id(thread: Any, agent: RemoteAgent) -> str:
    if thread is None:
        raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.EMPTY))
    found = usable_id(thread.get("thread_id")) if isinstance(thread, dict) else None
    if found is None:
        raise RemoteFault(FaultKind.NOT_PROTOCOL, host=agent.host, why=Reason(faults.NO_THREAD))
    return found


def _of_status(fault: httpx.HTTPStatusError, agent: RemoteAgent) -> RemoteFault:
    status, body = fault.response.status_code, getattr(fault, "body", None)
    said = error_of(body) if isinstance(body, dict) else ""  # a page of HTML says nothing to anybody here
    facts = {"host": agent.host, "status": status, "said": shorten(said, _LONGEST_SAID)}
    if status in {401, 403}:
        return RemoteFault(FaultKind.UNAUTHORIZED, **facts)
    if status == 404:
        return RemoteFault(FaultKind.NOT_FOUND, **facts)
    if status == 429:
        wait = fault.response.headers.get("retry-after", "").strip()
        if wait.isascii() and wait.isdigit():
            facts["said"] = Reason(faults.WAIT, seconds=wait[:6])
        return RemoteFault(FaultKind.BUSY, **facts)
    return RemoteFault(FaultKind.BROKEN if status >= 500 else FaultKind.REJECTED, **facts)


def _without_secrets(fault: RemoteFault, headers: Mapping[str, str]) -> RemoteFault:
    facts = {
        name: fact if isinstance(fact, Reason) or not isinstance(fact, str) else without_secrets(fact, headers.values())
        for name, fact in fault.facts.items()
    }
    return RemoteFault(fault.kind, **facts)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
