"""Which URLs may be reached: public addresses, and private ones that the configuration names. Rules only."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address behind a translator
_LOOK_UP_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Hosts and networks, besides public ones, that may be reached."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """From `outbound.allow_private`: host names and networks."""
        hosts, networks = set(), []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry))
            except ValueError:
                hosts.add(entry.lower().rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    def allows(self, host: str, address: str) -> bool:
        """Whether `address`, which `host` stands for, may be connected to."""
        if host.lower().rstrip(".") in self.hosts:
            return True
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return all(self._allows(one) for one in _meant(found))

    def _allows(self, address: Address) -> bool:
        named = any(address.version == network.version and address in network for network in self.networks)
        return named or (address.is_global and not address.is_multicast)


def _meant(address: Address) -> list[Address]:
    """The address itself and the IPv4 addresses that an IPv6 one reaches in the end."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inner = [address.sixtofour] if address.sixtofour is not None else list(address.teredo or ())
    if address in _TRANSLATED:
        inner = [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address, *inner]


def refusal_of_text(url: str, policy: Policy) -> str:
    """Why a URL may not be reached, as far as it says so itself; "" otherwise. Asks nobody."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "this is not a URL"
    if parts.scheme not in {"http", "https"} or not host:
        return "expected an absolute URL that begins with http:// or https://"
    if not url.isprintable() or " " in url or "\\" in url:
        return "the URL holds characters that no URL has"
    if parts.username is not None or parts.password is not None:
        return "the URL must not hold a name or a password"
    if port == 0:
        return "this is not a port"
    literal = _as_address(host)
    if literal is not None and not policy.allows(host, literal):
        return _refused(host)
    if host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost"):
        return "" if host.rstrip(".") in policy.hosts else _refused(host)
    return ""


def _as_address(host: str) -> str | None:
    """The address a host already is; in any spelling that connecting takes, such as 127.1 or 0x7f000001."""
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None


def _refused(host: str) -> str:
    return f"{host[:100]} is not a public address; outbound.allow_private in config.yaml decides which others may be"


async def refusal_of(url: str, policy: Policy) -> str:
    """As `refusal_of_text`, and why the addresses of its host may not be reached at this moment.

    A host that nobody knows just now is no refusal: it is looked up again when it is connected to.
    """
    refusal = refusal_of_text(url, policy)
    if refusal:
        return refusal
    host = urlsplit(url).hostname or ""
    try:
        async with asyncio.timeout(_LOOK_UP_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return ""
    addresses = {str(entry[4][0]) for entry in found}
    return "" if any(policy.allows(host, address) for address in addresses) else _refused(host)
