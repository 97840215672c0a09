"""Executing what is queued in this very process: for tests, and for seeding an example thread."""

from __future__ import annotations

from django.conf import settings

from runs.worker import plans
from runs.worker.host import RunHost


async def run_until_idle(*, slots: int = 100, max_attempts: int = 3, name: str = "inline") -> None:
    """Execute every queued run and what follows from it, then return."""
    host = RunHost(slots=slots, lease_seconds=settings.LEASE_SECONDS, max_attempts=max_attempts, name=name)
    try:
        await host.run_until_idle()
    finally:
        await plans.close_models()
