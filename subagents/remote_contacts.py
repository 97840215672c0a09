"""The last time each remote agent was spoken to, and what came of it; and asking one now whether it could work."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from django.db import DatabaseError, transaction
from django.utils import timezone

from engine.outbound.policy import Policy
from engine.reasons import Reason, from_plain, to_plain
from engine.reasons import gettext_noop as _
from engine.remote.client import RemoteServers
from engine.remote.faults import FaultKind, RemoteFault
from subagents import configuration
from subagents.models import RemoteContact
from subagents.remote_agents import callee
from subagents.sealing import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from engine.config.schema import Config
    from engine.remote.client import RemoteAgent as Callee
    from subagents.remote_agents import RemoteAgent

_CANNOT_OPEN = _("a header cannot be used: its variable is not set, or its value has to be entered again")
_NO_ADDRESS = _("it has no url: it is a graph or agent of this deployment, and nothing is sent")


@dataclass(frozen=True, slots=True)
class Contact:
    """`fault` empty: it answered."""

    at: datetime
    fault: str = ""
    sentence: str = ""


def contacts(names: Collection[str]) -> Mapping[str, Contact]:
    """The last contact with those of these names that were ever spoken to; one query."""
    try:
        with transaction.atomic():
            rows = list(RemoteContact.objects.filter(name__in=names))
    except DatabaseError:
        if configuration.table_exists(RemoteContact._meta.db_table):
            raise
        return {}
    return {row.name: Contact(row.at, row.fault, from_plain(row.sentence) or "") for row in rows}


def note_contact(name: str, fault: RemoteFault | None) -> None:
    """Write down that a remote agent was spoken to just now."""
    said = {
        "at": timezone.now(),
        "fault": fault.kind.value if fault else "",
        "sentence": to_plain(fault.sentence) if fault else {},
    }
    RemoteContact.objects.update_or_create(name=name[:64], defaults=said)


def opened(agent: RemoteAgent) -> Callee:
    """The agent as the engine calls it. Raises RemoteFault when it cannot be called as it is."""
    if agent.url is None:
        raise RemoteFault(FaultKind.CONFIGURATION, why=Reason(_NO_ADDRESS))
    try:
        return callee(agent, os.environ)
    except CannotOpen:
        raise RemoteFault(FaultKind.CONFIGURATION, why=Reason(_CANNOT_OPEN)) from None


def try_out(agent: RemoteAgent, config: Config) -> RemoteFault | None:
    """Ask the agent's server whether tasks could be started; None when they could. Takes at most its own time limits.

    What came of it is noted as the last contact, unless there is no server to speak to. Not to be called inside a
    transaction: it waits for somebody else's computer.
    """
    policy = Policy.of(config.outbound.allow_private)

    async def ask() -> None:
        servers = RemoteServers(lambda: policy, os.environ)
        try:
            await servers.probe(called)
        finally:
            await servers.aclose()

    found: RemoteFault | None = None
    try:
        called = opened(agent)
        async_to_sync(ask)()
    except RemoteFault as fault:
        found = fault
    if agent.url is not None:
        note_contact(agent.name, found)
    return found
