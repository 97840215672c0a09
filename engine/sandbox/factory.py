"""Chooses the sandbox provider that the configuration asks for and the machine can give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from engine.reasons import Reason
from engine.sandbox.bubblewrap import BubblewrapSandbox
from engine.sandbox.local import SWITCHED_OFF, LocalSandbox, NoSandbox

if TYPE_CHECKING:
    from engine.sandbox.base import Sandbox

Provider = Literal["auto", "bubblewrap", "local"]


def choose_sandbox(provider: Provider, *, allow_host_bash: bool, network: bool) -> Sandbox:
    """Return the provider; ask its available() before offering bash.

    `auto` takes bubblewrap where it works, else the host when `allow_host_bash` says so,
    else a sandbox that only says why not. A named provider is never exchanged for another.
    `network` lets isolated commands use the host's network, loopback included.
    """
    if provider == "local":
        return LocalSandbox(allow_host_bash=allow_host_bash)
    isolating = BubblewrapSandbox(network=network)
    if provider == "bubblewrap":
        return isolating
    availability = isolating.available()
    if availability.ok:
        return isolating
    if allow_host_bash:
        return LocalSandbox(allow_host_bash=True)
    both = {"isolating": availability.reason, "host": Reason(SWITCHED_OFF)}
    return NoSandbox(Reason("%(isolating)s %(host)s", **both))
