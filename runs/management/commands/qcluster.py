"""Starts workers: django-q2's own command, with the worker that executes runs."""

from __future__ import annotations

from typing import Any

from django_q.management.commands.qcluster import Command as DjangoQCommand


class Command(DjangoQCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        from runs import queue
        from runs.housekeeping import DAILY
        from runs.worker.async_worker import install
        from runs.worker.parent_watch import die_with_parent

        die_with_parent(only_if_supervised=True)
        install()
        queue.schedule_daily(DAILY, "housekeeping")
        super().handle(*args, **options)
