"""Why a run is as it is at this moment: its place in line, what it waits for, or how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import F, Sum
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs import clock, queue
from runs.explain import Explanation, explain
from runs.models import Run, WorkerHeartbeat
from runs.statuses import ENDED, RunStatus, WaitingFor

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID


class Reason(StrEnum):
    """Why a run has not begun."""

    NO_WORKER = "no_worker"
    BUSY = "busy"  # every slot of every worker is taken
    SOON = "soon"  # a worker with a free slot draws it next
    BEHIND = "behind"  # another run of its thread comes first
    LATER = "later"  # it is not due yet


@dataclass(frozen=True, slots=True)
class Standing:
    """A run that has not begun: why, and how many are served before it, itself included."""

    reason: Reason
    place: int | None = None  # None behind another run of its thread, and before it is due
    due_at: datetime | None = None

    def sentence(self) -> str:
        """In the active language."""
        facts = {"place": f"{self.place:,}" if self.place else "?"}
        match self.reason:
            case Reason.NO_WORKER:
                return _("No worker is running. Place %(place)s in line.") % facts
            case Reason.BUSY:
                return _("All workers are busy. Place %(place)s in line.") % facts
            case Reason.SOON:
                return _("A worker takes it in a moment. Place %(place)s in line.") % facts
            case Reason.LATER:
                return _("Is due later: %(time)s.") % {"time": date_format(localtime(self.due_at), "DATETIME_FORMAT")}
        return _("Waits behind the answer before it.")


def standings(run_ids: Collection[UUID]) -> dict[UUID, Standing]:
    """Those of these runs that have not begun and why. Two small questions, whatever waits."""
    rows = Run.objects.filter(pk__in=run_ids, status=RunStatus.PENDING).values_list("pk", "queue_id", "due_at")
    pending = {pk: (queue_id, due_at) for pk, queue_id, due_at in rows}
    now = clock.now()
    places = queue.places([pk for pk, (queue_id, _due) in pending.items() if queue_id is not None], now)
    reason = _reason() if places else Reason.SOON
    found = {pk: Standing(reason, place) for pk, place in places.items()}
    behind = {pk: Standing(Reason.BEHIND) for pk, (queue_id, _due) in pending.items() if queue_id is None}
    later = {
        pk: Standing(Reason.LATER, due_at=due_at)
        for pk, (queue_id, due_at) in pending.items()
        if queue_id is not None and due_at is not None and due_at > now
    }
    return {**found, **behind, **later}


def _reason() -> Reason:
    since = clock.now() - timedelta(seconds=2 * settings.LEASE_SECONDS)
    living = WorkerHeartbeat.objects.filter(seen_at__gte=since)
    free = living.aggregate(free=Sum(F("slots") - F("running") + F("waiting")))["free"]
    if free is None:
        return Reason.NO_WORKER
    return Reason.SOON if free > 0 else Reason.BUSY


def explain_now(run: Run) -> Explanation:
    """Why this run is as it is, whatever its status."""
    if run.status in ENDED:
        return explain(run) or Explanation(what=_("It is finished."))
    if run.status == RunStatus.PENDING:
        return _not_begun(run)
    if run.cancel_requested:
        return Explanation(
            what=_("It is being stopped."),
            way_out=_("If its worker is lost, stopping it again ends it once the lease is over."),
            limit=_("%(limit)s s") % {"limit": settings.LEASE_SECONDS},
            layer="LEASE_SECONDS",
        )
    return _waiting(run) or _working(run)


def _not_begun(run: Run) -> Explanation:
    standing = standings([run.pk]).get(run.pk, Standing(Reason.SOON))
    way_out = {
        Reason.NO_WORKER: _("Start one: python manage.py qcluster"),
        Reason.BUSY: _("Wait, or raise runs.workers or runs.slots_per_worker."),
        Reason.BEHIND: _("Send it now, which interrupts that answer, or take it back."),
    }.get(standing.reason, _("Nothing needs to be done."))
    layer = "runs.slots_per_worker" if standing.reason == Reason.BUSY else ""
    return Explanation(what=standing.sentence(), way_out=way_out, layer=layer)


def _waiting(run: Run) -> Explanation | None:
    match run.waiting_for:
        case WaitingFor.CHILDREN:
            count = run.children.active().filter(continues__isnull=True).count()
            what = ngettext("It waits for %(count)d subagent.", "It waits for %(count)d subagents.", count)
            return Explanation(what=what % {"count": count}, way_out=_("Cancel one to go on without it."))
        case WaitingFor.SLOT:
            return Explanation(
                what=_("Its subagents are back; it waits for a free slot of its worker."),
                way_out=_("Wait, or raise runs.slots_per_worker."),
                layer="runs.slots_per_worker",
            )
        case WaitingFor.PERSON:
            return Explanation(what=_("It waits for a person."), way_out=_("Answer its question."))
        case WaitingFor.MODEL | WaitingFor.RETRY:
            return _waiting_for_model(run)
    return None


def _waiting_for_model(run: Run) -> Explanation:
    if run.waiting_for == WaitingFor.RETRY:
        return Explanation(
            what=_("Its call of the model %(model)s failed and is made again in a moment.") % {"model": run.model},
            way_out=_("Wait, or stop it and choose another model."),
            layer="models.max_retries",
        )
    return Explanation(
        what=_("It waits for its turn: the model %(model)s takes no more calls at the same time.")
        % {"model": run.model},
        way_out=_("Wait, or raise max_concurrency of this model."),
        layer="models.max_concurrency",
    )


def _working(run: Run) -> Explanation:
    if queue.lapsed(run.queue_id, clock.now()):
        return Explanation(
            what=_("Its worker %(worker)s has not been heard of; the next free one goes on with it.")
            % {"worker": run.worker},
            way_out=_("See that a worker is running: python manage.py qcluster"),
            limit=_("%(limit)s s") % {"limit": settings.LEASE_SECONDS},
            layer="LEASE_SECONDS",
        )
    limits = run.definition.get("limits", {})
    facts = {"worker": run.worker, "turns": run.model_calls, "limit": limits.get("max_turns", "?")}
    return Explanation(
        what=_("It works on %(worker)s: %(turns)s of %(limit)s model calls made.") % facts,
        way_out=_("Nothing needs to be done."),
        limit=str(limits.get("max_turns", "")),
        layer=str(limits.get("max_turns_layer", "")),
    )
