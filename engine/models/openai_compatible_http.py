"""One model server over HTTP: connections kept for each event loop, and retries before the first byte."""

from __future__ import annotations

import asyncio
import io
import itertools
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import aiohttp
from yarl import URL

from engine.errors import wait_of
from engine.models.gate import MAX_OBEYED_WAIT_SECONDS, backoff_seconds
from engine.models.openai_compatible_events import read_at_most
from engine.models.openai_compatible_wire import ServerRefusal, UnreadableAnswer, decode, error_code, error_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONNECT_TIMEOUT_SECONDS: Final = 10.0
RETRIED_STATUSES: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
MAX_ERROR_BYTES: Final = 64 * 2**10
LARGE_BODY_BYTES: Final = 2**20  # aiohttp wants more than this as a file
MIN_SECRET_CHARACTERS: Final = 6


class ModelServer:
    """Posts requests to one address. `secrets`: texts that no error may repeat."""

    def __init__(
        self, url: str, headers: Mapping[str, str], *, secrets: Iterable[str], timeout_seconds: float, max_retries: int
    ) -> None:
        self._url = URL(url)
        self._headers = {**headers, "Content-Type": "application/json"}
        self._secrets = tuple(one for one in secrets if len(one) >= MIN_SECRET_CHARACTERS)
        self._timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_SECONDS, sock_read=timeout_seconds)
        self._max_retries = max_retries
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    def session(self) -> aiohttp.ClientSession:
        """The connections of the running loop; a connection never changes loops."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers=self._headers,
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=_proxy_for(self._url),
            )
        return session

    async def aclose(self) -> None:
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session:
            await session.close()

    async def open(self, body: bytes) -> aiohttp.ClientResponse:
        """Post until the server begins a good answer; leaving the answer's context ends its connection or keeps it.

        Raises ServerRefusal for an error status and what aiohttp raises for a lost or silent connection, both
        after `max_retries` further attempts where another one may help.
        """
        for attempt in itertools.count():
            again = attempt < self._max_retries
            try:
                response = await self._post(body)
            except aiohttp.ClientConnectionError as error:
                if not again or isinstance(error, aiohttp.SocketTimeoutError):
                    raise
                wait_seconds = backoff_seconds(attempt)
            else:
                if 200 <= response.status < 300:
                    return response
                refusal = await self._refusal(response)
                asked_seconds = retry_wait_seconds(response.headers, attempt)
                if not again or response.status not in RETRIED_STATUSES or asked_seconds is None:
                    raise refusal
                wait_seconds = asked_seconds
            await asyncio.sleep(wait_seconds)
        raise AssertionError("counting does not end")

    async def _post(self, body: bytes) -> aiohttp.ClientResponse:
        payload = io.BytesIO(body) if len(body) > LARGE_BODY_BYTES else body
        # A redirect would turn the request into a GET or carry the conversation to another host.
        return await self.session().post(self._url, data=payload, allow_redirects=False)

    async def _refusal(self, response: aiohttp.ClientResponse) -> ServerRefusal:
        async with response:
            try:
                text = await read_at_most(response, MAX_ERROR_BYTES)
            except (aiohttp.ClientError, TimeoutError, UnreadableAnswer):
                text = b""  # the status says enough
        try:
            body = decode(text)
        except UnreadableAnswer:
            body = {}
        message = error_message(body)
        if 300 <= response.status < 400:
            message = "it redirects to another address, which base_url should name"
        code = self.hide(error_code(body))
        return ServerRefusal(response.status, self.hide(message), code=code, headers=response.headers)

    def hide(self, text: str) -> str:
        """The text without the key and the configured headers' values, which servers like to quote."""
        for secret in self._secrets:
            text = text.replace(secret, "[hidden]")
        return text


def retry_wait_seconds(headers: Mapping[str, str], attempt: int) -> float | None:
    """What the server asks for, else the usual; None when it asks for more than a minute."""
    asked = wait_of(headers)
    if asked is None:
        return backoff_seconds(attempt)
    return asked if asked <= MAX_OBEYED_WAIT_SECONDS else None


def _proxy_for(url: URL) -> str | None:
    """What the environment says, asked once: aiohttp's own way asks at every call, and reads ~/.netrc too."""
    if proxy_bypass(url.host or ""):
        return None
    proxies = getproxies()
    return proxies.get(url.scheme) or proxies.get("all")
