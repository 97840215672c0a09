"""`/healthz`: the process answers. `/readyz`: it can also do its work, and if not, why not.

A middleware before all others, because a probe comes with whatever Host header it likes and has no session.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware

from runs.models import WorkerHeartbeat

type_get_response = Callable[[HttpRequest], Any]


def readiness(now: datetime) -> dict[str, Any]:
    """`{"ready": bool, "<part>": {"ok": bool, "reason": str}}` for database, migrations and workers."""
    parts: dict[str, str] = {"database": _database_fault()}
    unknown = "the database cannot be asked"
    parts["migrations"] = unknown if parts["database"] else _migrations_fault()
    parts["workers"] = unknown if parts["database"] else _workers_fault(now)
    report: dict[str, Any] = {"ready": not any(parts.values())}
    return report | {name: {"ok": not reason, "reason": reason} for name, reason in parts.items()}


@sync_and_async_middleware
def answer_probes(get_response: type_get_response) -> type_get_response:
    if iscoroutinefunction(get_response):

        async def answer(request: HttpRequest) -> HttpResponseBase:
            if request.path_info == "/readyz":
                return await sync_to_async(_ready)()
            return _alive() if request.path_info == "/healthz" else await get_response(request)

        markcoroutinefunction(answer)
        return answer

    def answer_sync(request: HttpRequest) -> HttpResponseBase:
        if request.path_info == "/readyz":
            return _ready()
        return _alive() if request.path_info == "/healthz" else get_response(request)

    return answer_sync


def _alive() -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain", headers={"Cache-Control": "no-store"})


def _ready() -> HttpResponse:
    report = readiness(timezone.now())
    return JsonResponse(report, status=200 if report["ready"] else 503, headers={"Cache-Control": "no-store"})


def _database_fault() -> str:
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "the database does not answer"  # its own words may name hosts and users
    return ""


def _migrations_fault() -> str:
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "the table of migrations cannot be read"
    return f"{len(waiting)} migrations are not applied" if waiting else ""


def _workers_fault(now: datetime) -> str:
    since = now - timedelta(seconds=2 * settings.LEASE_SECONDS)
    try:
        seen = WorkerHeartbeat.objects.filter(seen_at__gte=since).exists()
    except DatabaseError:
        return "the table of workers cannot be read"
    return "" if seen else f"no worker was seen in the last {2 * settings.LEASE_SECONDS} seconds"
