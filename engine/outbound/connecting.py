"""Connections that reach checked addresses only: a name is looked up once, and what was checked is connected to."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from engine.outbound.policy import refusal_of_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.outbound.policy import Policy

_DRAINED_BYTES = 64 << 10


class NotReached(Exception):
    """A request that was refused by the policy, or that got no answer."""


class CheckedResolver(AbstractResolver):
    """Gives only the addresses of a name that the policy allows at this moment."""

    def __init__(self, policy: Callable[[], Policy], names: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._names = names or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._names.resolve(host, port, family)
        allowed = [one for one in found if self._policy().allows(host, one["host"])]
        if not allowed:
            raise OSError(f"{host} has no address that may be reached")
        return allowed

    async def close(self) -> None:
        await self._names.close()


class Sender:
    """POSTs to URLs within a policy, which is asked anew for each. Follows no redirect and uses no proxy.

    Belongs to the running event loop; close it there.
    """

    def __init__(
        self, policy: Callable[[], Policy], *, timeout_seconds: float, names: AbstractResolver | None = None
    ) -> None:
        self._policy = policy
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(policy, names), use_dns_cache=False, force_close=True, limit=100
        )
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Send and say the status of the answer. Raises NotReached."""
        refusal = refusal_of_text(url, self._policy())
        if refusal:
            raise NotReached(refusal)
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                await answer.content.read(_DRAINED_BYTES)
                return answer.status
        except TimeoutError as fault:
            raise NotReached("no answer in time") from fault
        except (aiohttp.ClientError, OSError, ValueError) as fault:
            raise NotReached(f"{type(fault).__name__}: {fault}"[:300]) from fault

    async def close(self) -> None:
        await self._session.close()
