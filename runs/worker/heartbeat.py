"""Workers say that they live in rows of their own: django-q2 keeps its statistics in a cache that others cannot see."""

from __future__ import annotations

from datetime import timedelta

from runs import clock
from runs.models import WorkerHeartbeat


def beat(name: str, slots: int, running: int, waiting: int, gone_after_seconds: float) -> int:
    """Write this worker's row. Returns how many workers live, this one included."""
    now = clock.now()
    WorkerHeartbeat.objects.update_or_create(
        name=name,
        defaults={"slots": slots, "running": running, "waiting": waiting, "seen_at": now},
        create_defaults={
            "slots": slots,
            "running": running,
            "waiting": waiting,
            "seen_at": now,
            "started_at": now,
        },
    )
    WorkerHeartbeat.objects.filter(seen_at__lt=now - timedelta(seconds=10 * gone_after_seconds)).delete()
    return WorkerHeartbeat.objects.filter(seen_at__gte=now - timedelta(seconds=gone_after_seconds)).count()


def forget(name: str) -> None:
    WorkerHeartbeat.objects.filter(name=name).delete()
