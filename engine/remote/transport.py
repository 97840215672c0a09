"""HTTP for the LangGraph SDK: checked addresses only, bounded answers, no redirect to another host.

What was checked is what is connected to: a name is looked up once per connection, here.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING, Any, Final

import httpcore
import httpx

from engine.outbound.policy import refusal_of_text
from engine.reasons import Reason
from engine.remote import faults
from engine.remote.faults import FaultKind, RemoteFault

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence

    from engine.outbound.policy import Policy

    Names = Callable[[str, int], Awaitable[Sequence[str]]]

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 20.0  # for the whole of one answer, redirects included
LONGEST_ANSWER_BYTES: Final = 16 << 20
_MOST_REDIRECTS: Final = 3
_MOST_CONNECTIONS: Final = 50
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_KEEP_THE_METHOD: Final = frozenset({307, 308})


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system knows them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the addresses of a name that the policy allows at this moment, in turn."""

    def __init__(self, policy: Callable[[], Policy], names: Names = look_up) -> None:
        self._policy = policy
        self._names = names
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        fault: Exception | None = None
        for address in await self._allowed(host, port):
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                fault = failed
        if isinstance(fault, httpcore.ConnectTimeout):
            raise RemoteFault(FaultKind.TIMEOUT, host=host, seconds=_number(timeout)) from fault
        raise RemoteFault(FaultKind.REFUSED, host=host) from fault

    async def connect_unix_socket(self, *args: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        raise RemoteFault(FaultKind.ADDRESS, host="", why="a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _allowed(self, host: str, port: int) -> list[str]:
        try:
            found = await self._names(host, port)
        except (OSError, UnicodeError) as unknown:
            raise RemoteFault(FaultKind.DNS, host=host) from unknown
        allowed = [address for address in found if self._policy().allows(host, address)]
        if not allowed:
            why = f"{host[:100]} stands for no public address; outbound.allow_private in config.yaml decides"
            raise RemoteFault(FaultKind.ADDRESS, host=host, why=why)
        return allowed


class CheckedTransport(httpx.AsyncBaseTransport):
    """What all clients of one event loop share: a pool of connections. Raises RemoteFault and nothing of its libraries.

    Belongs to the running loop; close it there.
    """

    def __init__(
        self,
        policy: Callable[[], Policy],
        *,
        names: Names = look_up,
        answer_seconds: float = ANSWER_SECONDS,
        longest_answer_bytes: int = LONGEST_ANSWER_BYTES,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._answer_seconds = answer_seconds
        self._longest = longest_answer_bytes
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context or httpx.create_ssl_context(),
            max_connections=_MOST_CONNECTIONS,
            max_keepalive_connections=10,
            keepalive_expiry=20.0,
            network_backend=CheckedBackend(policy, names),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await self._followed(request)
        except (TimeoutError, httpcore.TimeoutException) as late:
            seconds = _number(self._answer_seconds)
            raise RemoteFault(FaultKind.TIMEOUT, host=request.url.host, seconds=seconds) from late
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as fault:
            raise _of_library(fault, request.url.host) from fault

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def _followed(self, request: httpx.Request) -> httpx.Response:
        url, body = request.url, await request.aread()
        for _hop in range(_MOST_REDIRECTS + 1):
            self._check(url)
            status, headers, content = await self._answer(request, url, body)
            where = headers.get("location")
            if status not in _REDIRECTS or not where:
                return httpx.Response(status, headers=_told(headers), content=content)
            url = self._redirected(request, status, url, where)
        raise RemoteFault(FaultKind.REDIRECT, host=url.host, where=_place(url), why=Reason(faults.TOO_MANY))

    def _check(self, url: httpx.URL) -> None:
        refusal = refusal_of_text(str(url), self._policy())
        if refusal:
            raise RemoteFault(FaultKind.ADDRESS, host=url.host, why=refusal)

    def _redirected(self, request: httpx.Request, status: int, url: httpx.URL, where: str) -> httpx.URL:
        """The address to go on with. Raises RemoteFault unless it is the same host's and the request stays whole."""
        try:
            target = url.join(where)
        except (httpx.InvalidURL, ValueError) as fault:
            raise _not_followed(url, "", Reason(faults.NOT_A_URL)) from fault
        refusal = refusal_of_text(str(target), self._policy())
        if refusal:
            raise _not_followed(url, _place(target), refusal)
        upgraded = (url.scheme, target.scheme) == ("http", "https") and url.port is None and target.port is None
        same = (url.scheme, url.port) == (target.scheme, target.port)
        if target.host != url.host or not (same or upgraded):
            raise _not_followed(url, _place(target), Reason(faults.ANOTHER_HOST))
        if request.method != "GET" and status not in _KEEP_THE_METHOD:
            raise _not_followed(url, _place(target), Reason(faults.METHOD_CHANGES))
        return target

    async def _answer(self, request: httpx.Request, url: httpx.URL, body: bytes) -> tuple[int, httpx.Headers, bytes]:
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=body,
            extensions=request.extensions,
        )
        answer = await self._pool.handle_async_request(asked)
        try:
            headers = httpx.Headers(answer.headers)
            if headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
                raise RemoteFault(FaultKind.NOT_PROTOCOL, host=url.host, why=Reason(faults.ENCODED))
            return answer.status, headers, await self._whole(answer.stream, url.host)
        finally:
            await answer.aclose()

    async def _whole(self, stream: Any, host: str) -> bytes:
        parts: list[bytes] = []
        size = 0
        pieces: AsyncIterable[bytes] = stream
        async for part in pieces:
            size += len(part)
            if size > self._longest:
                raise RemoteFault(FaultKind.TOO_LARGE, host=host, limit=_number(self._longest / (1 << 20)))
            parts.append(part)
        return b"".join(parts)


def _of_library(fault: Exception, host: str) -> RemoteFault:
    if isinstance(fault, httpcore.ConnectError):  # the address itself was reached: CheckedBackend says otherwise
        return RemoteFault(FaultKind.TLS, host=host, why=_why_not_secure(fault))
    if isinstance(fault, httpcore.LocalProtocolError):
        return RemoteFault(FaultKind.CONFIGURATION, why="the request cannot be sent as it is")
    cut = any(word in str(fault) for word in ("disconnected", "closed"))  # both are RemoteProtocolError
    if isinstance(fault, httpcore.RemoteProtocolError) and not cut:
        return RemoteFault(FaultKind.NOT_PROTOCOL, host=host, why=Reason(faults.NOT_HTTP))
    return RemoteFault(FaultKind.CUT, host=host)


def _why_not_secure(fault: Exception) -> str:
    inner = fault.args[0] if fault.args else None
    if not isinstance(inner, ssl.SSLError):
        return Reason(faults.BROKEN_OFF)
    why = getattr(inner, "verify_message", "") or inner.reason or type(inner).__name__
    return str(why).replace("_", " ").lower()[:200]


def _not_followed(url: httpx.URL, where: str, why: str) -> RemoteFault:
    return RemoteFault(FaultKind.REDIRECT, host=url.host, where=where or "-", why=why)


def _told(headers: httpx.Headers) -> list[tuple[str, str]]:
    """What the SDK reads of an answer. Its length and encoding are those of what was read."""
    return [(name, headers[name]) for name in ("content-type", "content-location", "retry-after") if name in headers]


def _place(url: httpx.URL) -> str:
    """An address without its query, which may hold what nobody shall read."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace').rpartition('@')[2]}{url.path}"[:200]


def _number(value: float | None) -> str:
    return f"{value or 0:g}"
