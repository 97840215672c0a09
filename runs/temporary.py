"""Threads of runs that were asked for without one: they go some time after their run has ended.

Whoever waits for the run, or comes back to a broken stream, finds it until then.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef

from runs import services
from runs.errors import ThreadNotFound
from runs.models import Run, Thread, WebhookDelivery
from runs.statuses import ACTIVE

if TYPE_CHECKING:
    from datetime import datetime

logger = logging.getLogger(__name__)
KEPT_SECONDS = 120


def remove_ended(now: datetime, *, most: int) -> int:
    """Remove temporary threads on which nothing has been active for KEPT_SECONDS; how many. Any worker may do so.

    What a webhook still has to be told of one is taken from its rows first.
    """
    below = Run.objects.filter(root_id=OuterRef("runs__root_id"), status__in=ACTIVE)
    untold = WebhookDelivery.objects.filter(run_id=OuterRef("runs__pk"), next_at=None, done_at=None)
    old = Thread.objects.filter(temporary=True, updated_at__lt=now - timedelta(seconds=KEPT_SECONDS))
    over = old.filter(~Exists(below), ~Exists(untold)).values_list("pk", flat=True)
    removed = 0
    for thread_id in list(over[:most]):
        try:
            services.delete_thread(thread_id=thread_id, by="completion")
        except ThreadNotFound:
            continue  # another worker was faster
        except OSError:
            logger.exception("thread %s is removed, its files are not", thread_id)
        removed += 1
    return removed
