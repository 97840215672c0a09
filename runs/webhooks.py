"""Deliveries of webhooks as rows: what is due, who sends it, what came of it.

A delivery is sent by whoever wins the compare-and-set on its time; should they die, it is due again when that has
passed. So a receiver may see one twice, with the same id, and never two with different bodies.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, InterfaceError
from django.db.models import Exists, F, OuterRef

from engine.text import clean
from runs import clock
from runs.models import Run, WebhookDelivery
from runs.statuses import ENDED
from subagents import registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

logger = logging.getLogger(__name__)
ATTEMPT_SECONDS: Final = 15.0  # for the whole of one attempt
_HELD_SECONDS: Final = 60.0  # well above it: nobody else sends the same delivery meanwhile
# Between one attempt and the next; the last one given up after about a day.
PAUSES_SECONDS: Final = (5, 30, 120, 600, 1_800, 7_200, 21_600, 43_200)
_MOST_AT_ONCE: Final = 10


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt that this process makes."""

    id: UUID
    url: str
    body: str
    attempt: int  # from 1


def ready(body_of: Callable[[Run, datetime], str], *, most: int = _MOST_AT_ONCE) -> int:
    """Write down what the receivers of runs that have ended are told; how many. Those of deleted runs are dropped."""
    waiting = WebhookDelivery.objects.filter(next_at=None, done_at=None)
    if not waiting.exists():
        return 0
    ended = Run.objects.filter(pk=OuterRef("run_id"), status__in=ENDED)
    there = Run.objects.filter(pk=OuterRef("run_id"))
    over = list(waiting.filter(Exists(ended)).order_by("pk")[:most])
    runs = Run.objects.select_related("thread").in_bulk([one.run_id for one in over])
    now, written = clock.now(), 0
    for one in over:
        if (run := runs.get(one.run_id)) is not None:
            written += _write_down(one, run, body_of, now)
    gone = list(waiting.filter(~Exists(there)).values_list("pk", flat=True)[:most])
    if gone:
        WebhookDelivery.objects.filter(pk__in=gone).delete()
    return written


def _write_down(one: WebhookDelivery, run: Run, body_of: Callable[[Run, datetime], str], now: datetime) -> int:
    still = WebhookDelivery.objects.filter(pk=one.pk, next_at=None, done_at=None)
    try:
        body = body_of(run, now)
    except (DatabaseError, InterfaceError):
        raise
    except Exception as fault:
        # One that cannot be told must not keep the others, nor the worker, from their work.
        logger.exception("webhook %s: what to tell of run %s cannot be said", one.pk, run.pk)
        still.update(done_at=now, error=f"{type(fault).__name__}: the run cannot be told"[:300])
        return 0
    return still.update(body=body, next_at=now)


def claim(*, most: int = _MOST_AT_ONCE) -> list[Delivery]:
    """Take deliveries that are due. Each is taken by one process only."""
    now = clock.now()
    taken = []
    for one in _due(now, most):
        # The time that was read is the token: whoever changes it first has the delivery.
        own = WebhookDelivery.objects.filter(pk=one.pk, next_at=one.next_at, done_at=None)
        if own.update(next_at=now + timedelta(seconds=_HELD_SECONDS), attempts=F("attempts") + 1):
            taken.append(Delivery(one.pk, one.url, one.body, one.attempts + 1))
    return taken


def _due(now: datetime, most: int) -> list[WebhookDelivery]:
    return list(WebhookDelivery.objects.filter(done_at=None, next_at__lte=now).order_by("next_at")[:most])


def record(delivery: Delivery, error: str) -> None:
    """What came of an attempt; "" when it was delivered. After the last pause it is given up."""
    now = clock.now()
    own = WebhookDelivery.objects.filter(pk=delivery.id, attempts=delivery.attempt, done_at=None)
    if not error:
        own.update(done_at=now, delivered=True, error="", body="")
    elif delivery.attempt > len(PAUSES_SECONDS):
        own.update(done_at=now, error=clean(error)[:300], body="")
    else:
        pause = timedelta(seconds=PAUSES_SECONDS[delivery.attempt - 1])
        own.update(next_at=now + pause, error=clean(error)[:300])


def prune(now: datetime, dry_run: bool) -> dict[str, int]:
    """Remove deliveries that were done longer ago than runs.retention_days."""
    before = now - timedelta(days=registry.current().config.runs.retention_days)
    old = WebhookDelivery.objects.filter(done_at__lt=before)
    return {"webhook_deliveries": old.count() if dry_run else old.delete()[0]}
