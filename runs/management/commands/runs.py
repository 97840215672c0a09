"""Runs on the command line: list them, look at one, ask why it is as it is, remove what is no longer kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import CharField, Q, Value
from django.db.models.functions import Cast, Replace
from django.utils.translation import gettext as _

from access.console import in_terminals_language
from runs.housekeeping import housekeep
from runs.models import Run
from runs.standing import explain_now
from runs.statuses import RunStatus

if TYPE_CHECKING:
    from datetime import datetime

_SHORTEST_PART = 4
_HEX_DIGITS = frozenset("0123456789abcdef")


class Command(BaseCommand):
    help = "List runs, show one, say why it is as it is, prune what is no longer kept."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="the newest runs")
        listing.add_argument("--status", choices=[status.value for status in RunStatus])
        listing.add_argument("--active", action="store_true", help="only those that have not ended")
        listing.add_argument("--limit", type=int, default=20)
        show = verbs.add_parser("show", help="everything a run's row says")
        why = verbs.add_parser("why", help="why a run is as it is, the limit, who set it, and one way out")
        for verb in (show, why):
            verb.add_argument("id", help="the id, or its beginning or end if no other run has that")
        prune = verbs.add_parser("prune", help="remove deltas, steps and queue results older than runs.retention_days")
        prune.add_argument("--dry-run", action="store_true", help="only count")
        prune.add_argument("--days", type=int, help="instead of runs.retention_days")
        for verb in (listing, show, why, prune):
            verb.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        with in_terminals_language():
            getattr(self, f"_{options['verb']}")(options)

    def _list(self, options: dict[str, Any]) -> None:
        runs = Run.objects.active() if options["active"] else Run.objects.all()
        if options["status"]:
            runs = runs.filter(status=options["status"])
        rows = [_row(run) for run in runs.order_by("-created_at")[: max(0, options["limit"])]]
        if options["json"]:
            self.stdout.write(json.dumps(rows))
            return
        for row in rows:
            ended = row["stop_reason"] or row["error_code"]
            status = f"{row['status']} ({ended})" if ended else row["status"]
            self.stdout.write(f"{row['id']}  {status:<28} {row['agent']}  {row['title']}".rstrip())

    def _show(self, options: dict[str, Any]) -> None:
        run = _found(options["id"])
        row = {**_row(run), **_details(run)}
        if options["json"]:
            self.stdout.write(json.dumps(row))
            return
        for name, value in row.items():
            if value not in (None, "", {}, []):
                self.stdout.write(f"{name:>16}  {value}")

    def _why(self, options: dict[str, Any]) -> None:
        run = _found(options["id"])
        explanation = explain_now(run)
        if options["json"]:
            said = {"what": explanation.what, "limit": explanation.limit, "layer": explanation.layer}
            answer = {"id": str(run.pk), "status": run.status, **said, "way_out": explanation.way_out}
            self.stdout.write(json.dumps({**answer, "stop_reason": run.stop_reason, "error_code": run.error_code}))
            return
        self.stdout.write(explanation.what)
        if explanation.layer:
            self.stdout.write(f"  {explanation.layer}" + (f" = {explanation.limit}" if explanation.limit else ""))
        if explanation.way_out:
            self.stdout.write(explanation.way_out)

    def _prune(self, options: dict[str, Any]) -> None:
        if options["days"] is not None and options["days"] < 0:
            raise CommandError(_("--days: expected 0 or more"), returncode=2)
        removed = housekeep(days=options["days"], dry_run=options["dry_run"])
        if options["json"]:
            self.stdout.write(json.dumps({"dry_run": options["dry_run"], **removed}))
            return
        said = _("%(count)s %(what)s would be removed") if options["dry_run"] else _("%(count)s %(what)s removed")
        for name, count in removed.items():
            self.stdout.write(said % {"count": f"{count:>9,} ", "what": name.replace("_", " ")})


def _found(written: str) -> Run:
    """The one run with this id or this part of one. Raises CommandError with exit code 3, or 2 for several."""
    part = written.strip().lower().replace("-", "")
    if len(part) < _SHORTEST_PART or not set(part) <= _HEX_DIGITS:
        raise CommandError(_("%(written)r is no run's id") % {"written": written}, returncode=2)
    text = Replace(Cast("id", CharField()), Value("-"), Value(""))
    runs = list(Run.objects.alias(text=text).filter(Q(text__startswith=part) | Q(text__endswith=part))[:2])
    if not runs:
        raise CommandError(_("no run %(written)s") % {"written": written}, returncode=3)
    if len(runs) > 1:
        raise CommandError(_("several runs have %(written)s; give more of the id") % {"written": written}, returncode=2)
    return runs[0]


def _row(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "thread": str(run.thread_id),
        "agent": run.agent,
        "title": run.title,
        "status": run.status,
        "stop_reason": run.stop_reason,
        "error_code": run.error_code,
        "worker": run.worker,
        "created_at": _time(run.created_at),
    }


def _details(run: Run) -> dict[str, Any]:
    return {
        "parent": str(run.parent_id or ""),
        "continues": str(run.continues_id or ""),
        "children": [str(pk) for pk in run.children.order_by("created_at").values_list("pk", flat=True)],
        "attempt": run.attempt,
        "lost_workers": run.lost_workers,
        "waiting_for": run.waiting_for,
        "model": run.model,
        "model_calls": run.model_calls,
        "total_tokens": run.total_tokens,
        "started_at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
        "error": run.error,
        "limits": run.definition.get("limits", {}),
    }


def _time(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""
