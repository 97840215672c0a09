"""What the runs tell about the use of subagents (see `subagents.usage`)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Max, Q
from django.urls import reverse
from django.utils import timezone

from subagents.usage import RECENT_DAYS, Use, UsedBy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.db.models import QuerySet

    from runs.models import Run


class RunsOfSubagents:
    """Counts child runs: a lead of the same name is another agent."""

    def last_used(self, names: Collection[str]) -> Mapping[str, Use]:
        return _use_of(_children().filter(agent__in=names))

    def agents_last_used(self, names: Collection[str]) -> Mapping[str, Use]:
        from runs.models import Run

        return _use_of(Run.objects.filter(parent__isnull=True, agent__in=names))

    def newest_runs(self, name: str, limit: int) -> Sequence[UsedBy]:
        newest = _children().filter(agent=name).order_by("-created_at")[:limit]
        return [
            UsedBy(
                path=reverse("admin:runs_run_change", args=[run.pk]),
                title=run.title,
                status=run.get_status_display(),
                at=run.created_at,
            )
            for run in newest
        ]


def _use_of(runs: QuerySet[Run]) -> dict[str, Use]:
    since = timezone.now() - timedelta(days=RECENT_DAYS)
    recent = Count("pk", filter=Q(created_at__gte=since))
    found = runs.values("agent").annotate(at=Max("created_at"), recent=recent).order_by()
    return {row["agent"]: Use(at=row["at"], recent_runs=row["recent"]) for row in found}


def _children() -> QuerySet[Run]:
    from runs.models import Run

    return Run.objects.filter(parent__isnull=False)
