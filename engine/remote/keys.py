"""What goes along with a request to another server: its own headers, and the environment's key where that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from engine.config.connections import EnvKeyPolicy
from engine.config.fields import is_header_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAMES: Final = ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")  # as the SDK goes through them
_OWN_DOMAINS: Final = ("langsmith.dev", "langgraph.app")
_KEY: Final = "x-api-key"
_SCHEME: Final = "x-auth-scheme"
_SHORTEST_SECRET: Final = 4
MASK: Final = "••••"


def env_key(url: str, policy: EnvKeyPolicy, environ: Mapping[str, str]) -> str | None:
    """The key of the environment for this address, or None. `auto`: only to LangChain's own hosts, over https.

    Source: product.md §6.
    """
    if policy is EnvKeyPolicy.NEVER or (policy is EnvKeyPolicy.AUTO and not _is_langchains(url)):
        return None
    for name in _NAMES:
        key = environ.get(name, "").strip().strip("\"'")
        if key and is_header_value(key):
            return key
    return None


def headers_for(url: str, own: Mapping[str, str], policy: EnvKeyPolicy, environ: Mapping[str, str]) -> dict[str, str]:
    """Every header of a request to this address. An agent's own key stands before that of the environment."""
    headers = {name.lower(): value for name, value in own.items()}
    key = None if _KEY in headers else env_key(url, policy, environ)
    if key is not None:
        headers[_KEY] = key
        headers.setdefault(_SCHEME, "langsmith")  # as deepagents says it to LangChain's hosts
    return headers


def without_secrets(text: str, values: Iterable[str]) -> str:
    """What another server said, without the headers it was sent: some repeat them in their errors."""
    for value in sorted(set(values), key=len, reverse=True):
        for secret in (value, value.partition(" ")[2].strip()):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, MASK)
    return text


def _is_langchains(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return False
    return parts.scheme == "https" and any(host == domain or host.endswith(f".{domain}") for domain in _OWN_DOMAINS)
