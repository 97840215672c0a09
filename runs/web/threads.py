"""The conversations of a person, as the rail shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q

from runs.models import Thread
from runs.statuses import RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MAX_LISTED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadList:
    """The conversations of one person, each newest first. `running` have a run that has not ended."""

    running: Sequence[Any]
    earlier: Sequence[Any]


def list_threads(user: AbstractBaseUser | AnonymousUser) -> ThreadList:
    """At most 200 conversations; each has `running_count` and `queued_count` set."""
    running = Count("runs", filter=Q(runs__status=RunStatus.RUNNING))
    queued = Count("runs", filter=Q(runs__status=RunStatus.PENDING))
    found = list(
        Thread.objects.visible_to(user)
        .chats()
        .annotate(running_count=running, queued_count=queued)
        .order_by("-updated_at")[:MAX_LISTED]
    )
    busy = [thread for thread in found if thread.running_count or thread.queued_count]
    return ThreadList(running=busy, earlier=[thread for thread in found if thread not in busy])
