"""What a deployment says of itself: what it can do, and numbers for Prometheus."""

from __future__ import annotations

from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Count, Sum
from django.utils import timezone
from starlette.responses import Response

from access.keys import Scope
from runs.agent_protocol.access import asked
from runs.agent_protocol.shapes import json_response
from runs.models import Run, WorkerHeartbeat
from runs.statuses import ACTIVE, ENDED, RunStatus

if TYPE_CHECKING:
    from starlette.requests import Request

PROTOCOL_VERSION: Final = "0.1.6"  # of the Agent Protocol
_PERIOD = timedelta(hours=1)


async def get_info(request: Request) -> Response:
    await asked(request, Scope.READ, lambda caller: caller)
    flags = {"assistants": True, "crons": False, "langsmith": False, "store": True, "webhooks": True}
    about = {
        "version": PROTOCOL_VERSION,
        "langgraph_py_version": _version_of("langgraph"),
        "flags": flags,
        "host": {"kind": "self-hosted", "project_id": None, "revision_id": None, "tenant_id": None},
    }
    return json_response(about)


async def get_metrics(request: Request) -> Response:
    text = await asked(request, Scope.ADMIN, lambda _caller: metrics())
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def metrics() -> str:
    """Of all people's runs, in Prometheus' text format. Each number comes from an index, whatever is stored."""
    now = timezone.now()
    active = _by_status(Run.objects.filter(status__in=ACTIVE).values_list("status").annotate(Count("pk")), ACTIVE)
    ended = Run.objects.filter(status__in=ENDED, pruned=False, ended_at__gte=now - _PERIOD)
    waiting = Run.objects.filter(status=RunStatus.PENDING)
    alive = WorkerHeartbeat.objects.filter(seen_at__gte=now - timedelta(seconds=2 * settings.LEASE_SECONDS))
    workers = alive.aggregate(count=Count("pk"), slots=Sum("slots"), running=Sum("running"), waiting=Sum("waiting"))
    parts = [
        _gauge("runs_active", "Runs that have not ended", active),
        _gauge(
            "runs_ended_last_hour",
            "Runs that ended in the last hour",
            _by_status(ended.values_list("status").annotate(Count("pk")), ENDED),
        ),
        _gauge("queue_depth", "Runs whose turn has come, without a worker", waiting.exclude(queue_id=None).count()),
        _gauge("runs_waiting_in_line", "Runs behind another of their thread", waiting.filter(queue_id=None).count()),
        _gauge("workers", "Workers seen within two leases", workers["count"]),
        _gauge("worker_slots", "Slots of these workers", workers["slots"] or 0),
        _gauge("worker_slots_used", "Slots that hold a run", workers["running"] or 0),
        _gauge("worker_runs_waiting", "Runs of these workers that hold no slot", workers["waiting"] or 0),
    ]
    return "".join(parts)


def _by_status(rows: object, statuses: frozenset[RunStatus]) -> dict[str, int]:
    return {**dict.fromkeys(sorted(statuses), 0), **dict(rows)}  # type: ignore[call-overload,no-any-return]


def _gauge(name: str, about: str, value: int | dict[str, int]) -> str:
    head = f"# HELP deerflow_{name} {about}.\n# TYPE deerflow_{name} gauge\n"
    if isinstance(value, int):
        return f"{head}deerflow_{name} {value}\n"
    return head + "".join(f'deerflow_{name}{{status="{status}"}} {count}\n' for status, count in value.items())


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
