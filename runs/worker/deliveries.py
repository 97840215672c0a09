"""Sends webhooks from a worker's loop: what a run's end is told to, signed and within the policy for addresses."""

from __future__ import annotations

import asyncio
import base64
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson
from django.conf import settings
from standardwebhooks import Webhook

from engine.outbound.connecting import NotReached, Sender
from engine.outbound.policy import Policy
from runs import webhooks
from runs.agent_protocol.reading import end_seq
from runs.agent_protocol.shapes import ending_object, run_object
from runs.agent_protocol.state import state_upto
from runs.group_commit import NO_DATABASE
from subagents import registry

if TYPE_CHECKING:
    from runs.group_commit import GroupCommit
    from runs.models import Run
    from runs.webhooks import Delivery

logger = logging.getLogger(__name__)
_PREFIX = "whsec_"


class Deliveries:
    """The webhooks that this process sends. Everything happens on the loop that constructs it."""

    def __init__(self, database: GroupCommit) -> None:
        self._database = database
        self._sender: Sender | None = None
        self._policy = Policy()  # as of the latest look
        self._under_way: set[asyncio.Task[None]] = set()

    async def look(self) -> None:
        """Begin to send what is due."""
        deliveries, self._policy = await self._database.call(_due)
        for delivery in deliveries:
            task = asyncio.get_running_loop().create_task(self._send(delivery))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        """Stop sending. What was not answered yet is due again after a while, for whichever worker comes first."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._sender is not None:
            await self._sender.close()

    async def _send(self, delivery: Delivery) -> None:
        if self._sender is None:
            self._sender = Sender(lambda: self._policy, timeout_seconds=webhooks.ATTEMPT_SECONDS)
        try:
            status = await self._sender.post(delivery.url, delivery.body.encode(), signed(delivery, datetime.now(UTC)))
            error = "" if 200 <= status < 300 else f"answered {status}"
        except NotReached as fault:
            error = str(fault)
        if error:
            logger.warning("webhook %s, attempt %d: %s", delivery.id, delivery.attempt, error)
        try:
            await self._database.call(webhooks.record, delivery, error)
        except NO_DATABASE as fault:
            logger.warning("webhook %s: what came of it is not stored (%s); it is sent again", delivery.id, fault)


def signed(delivery: Delivery, now: datetime) -> dict[str, str]:
    """The headers of a delivery, by the rules of Standard Webhooks: id, time, and HMAC-SHA256 of both and the body."""
    key = Webhook(signing_secret())
    return {
        "content-type": "application/json",
        "user-agent": "deer-flow-webhooks",
        "webhook-id": str(delivery.id),
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": key.sign(str(delivery.id), now, delivery.body),
    }


def signing_secret() -> str:
    """The secret as receivers' libraries take it: whsec_ and base64."""
    secret: str = settings.WEBHOOK_SECRET
    return secret if secret.startswith(_PREFIX) else _PREFIX + base64.b64encode(secret.encode()).decode()


def body_of(run: Run, now: datetime) -> str:
    """What a receiver is told: the run as the wire shows it, when and how it ended, and the thread's values then."""
    values = state_upto(run.thread_id, end_seq(run.pk, run.thread_id)).json().decode()
    head = {
        **run_object(run),
        "run_started_at": run.started_at.isoformat() if run.started_at else None,
        "run_ended_at": run.ended_at.isoformat() if run.ended_at else None,
        "webhook_sent_at": now.isoformat(),
        "error": ending_object(run),
    }
    return orjson.dumps(head, default=str).decode()[:-1] + ',"values":' + values + "}"


def _due() -> tuple[list[Delivery], Policy]:
    """What this process sends now, and whither it may."""
    webhooks.ready(body_of)
    deliveries = webhooks.claim()
    return deliveries, _policy()


def _policy() -> Policy:
    return Policy.of(registry.current().config.outbound.allow_private)
