"""Whether this server may send to a URL that a program named: said when it is named, and looked at again each time."""

from __future__ import annotations

from engine.outbound.policy import Policy, refusal_of
from runs.agent_protocol.access import database
from runs.errors import BadInput
from subagents import registry


async def check_webhook(url: str) -> None:
    """Raise BadInput for a URL that no webhook of this server reaches."""
    refusal = await refusal_of(url, await database().call(_policy))
    if refusal:
        raise BadInput("webhook", refusal)


def _policy() -> Policy:
    return Policy.of(registry.current().config.outbound.allow_private)
