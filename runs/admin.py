"""The admin's view of what happens: read-only lists of runs and workers; cancelling is a service call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from runs import run_actions, services
from runs.explain import clamps_in_words, error_in_words, why_no_delegation
from runs.models import Run, WorkerHeartbeat
from runs.standing import explain_now
from runs.statuses import RunStatus
from subagents.adminkit import ModelAdmin, action, display

if TYPE_CHECKING:
    from datetime import timedelta

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    _Base = ModelAdmin[Any]
else:
    _Base = ModelAdmin

_BADGES = {
    RunStatus.PENDING: "default",
    RunStatus.RUNNING: "info",
    RunStatus.SUCCESS: "success",
    RunStatus.ERROR: "danger",
    RunStatus.TIMEOUT: "danger",
    RunStatus.INTERRUPTED: "warning",
    RunStatus.CANCELLED: "warning",
    "cut_short": "warning",  # no status: it has an answer, but not a whole one
}


class ReadOnlyAdmin(_Base):
    """Nobody adds, changes or deletes these rows by hand."""

    empty_value_display = "–"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """All runs, leads and children, with the worker that executed each."""

    list_display = ["short_id", "agent", "title_or_owner", "status_badge", "on_worker", "turns", "tokens", "duration"]
    list_filter = ["status", "agent", "depth"]
    list_filter_sheet = False
    list_select_related = ["thread__owner"]
    list_per_page = 50
    search_fields = ["id", "title", "agent", "worker"]
    ordering = ["-created_at"]
    actions = ["cancel"]
    fields = [
        "id",
        "agent",
        "title",
        "status_words",
        "why",
        "limit_and_layer",
        "what_can_be_done",
        "what_was_said",
        "delegation",
        "clamps",
        "worker",
        "attempt",
        "model",
        "turns",
        "tokens",
        "created_at",
        "started_at",
        "ended_at",
        "duration",
        "parent_link",
        "children_table",
        "options",
        "metadata",
        "definition",
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # The definition holds the system prompt.
        hidden = set() if request.user.has_perm("subagents.view_prompt") else {"definition"}
        if not self.has_cancel_permission(request):
            hidden.add("what_can_be_done")
        return [name for name in self.fields if name not in hidden]

    @display(description=_("run"), ordering="created_at")
    def short_id(self, run: Run) -> str:
        return str(run.pk)[-12:]

    @display(description=_("task"))
    def title_or_owner(self, run: Run) -> str:
        return run.title or f"{run.thread} · {run.thread.owner}"

    @display(description=_("status"), ordering="status", label=_BADGES)
    def status_badge(self, run: Run) -> tuple[str, str]:
        if run.status == RunStatus.SUCCESS and run.stop_reason:
            return "cut_short", gettext("Done, cut short")
        return run.status, run.get_status_display()

    @display(description=_("status"))
    def status_words(self, run: Run) -> str:
        return self.status_badge(run)[1]

    @display(description=_("worker"), ordering="worker")
    def on_worker(self, run: Run) -> SafeString | str:
        return format_html('<span style="white-space: nowrap">{}</span>', run.worker) if run.worker else "–"

    @display(description=_("turns"), ordering="model_calls")
    def turns(self, run: Run) -> int:
        return run.model_calls

    @display(description=_("tokens"))
    def tokens(self, run: Run) -> str:
        return "–" if run.total_tokens is None else f"{run.total_tokens:,}"

    @display(description=_("duration"))
    def duration(self, run: Run) -> str:
        if run.started_at is None:
            return "–"
        return _clock((run.ended_at or timezone.now()) - run.started_at)

    @display(description=_("why"))
    def why(self, run: Run) -> str:
        return explain_now(run).sentence

    @display(description=_("limit"))
    def limit_and_layer(self, run: Run) -> str:
        explanation = explain_now(run)
        return " ← ".join(filter(None, (explanation.limit, explanation.layer))) or "–"

    @display(description=_("error"))
    def what_was_said(self, run: Run) -> str:
        return error_in_words(run.error, run.stop_detail) or "–"

    @display(description=_("what can be done"))
    def what_can_be_done(self, run: Run) -> SafeString | str:
        return run_actions.buttons(run)

    def get_urls(self) -> list[Any]:
        return [*run_actions.urls(self.admin_site), *super().get_urls()]

    @display(description=_("may call"))
    def delegation(self, run: Run) -> str:
        if off := why_no_delegation(run.metadata.get("delegation_off")):
            return off
        names = run.metadata.get("allowed_subagents")
        return ", ".join(map(str, names)) if isinstance(names, list) and names else "–"

    @display(description=_("clamped"))
    def clamps(self, run: Run) -> str:
        return " ".join(clamps_in_words(run.metadata.get("clamped"))) or "–"

    @display(description=_("asked for by"))
    def parent_link(self, run: Run) -> SafeString | str:
        return _link(run.parent) if run.parent else "–"

    @display(description=_("delegations"))
    def children_table(self, run: Run) -> SafeString | str:
        rows = [
            (_link(child), child.title, child.get_status_display(), child.worker or "–", self.duration(child))
            for child in run.children.order_by("created_at")
        ]
        if not rows:
            return "–"
        body = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", rows)
        heads = (_("subagent"), _("task"), _("status"), _("worker"), _("duration"))
        head = format_html_join("", "<th>{}</th>", ((name,) for name in heads))
        return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", head, body)

    @action(description=_("Cancel selected runs"), permissions=["cancel"])
    def cancel(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        by = request.user.get_username()
        asked = sum(services.cancel_run(run_id=pk, by=by) for pk in runs.values_list("pk", flat=True))
        text = ngettext("%(count)d run told to stop.", "%(count)d runs told to stop.", asked) % {"count": asked}
        self.message_user(request, text, messages.SUCCESS)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("runs.change_run")


@admin.register(WorkerHeartbeat)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ["name", "slots", "running", "waiting", "started_at", "seen_at"]
    ordering = ["name"]


def _link(run: Run) -> SafeString:
    return format_html(
        '<a href="{}" style="text-decoration: underline">{} {}</a>',
        reverse("admin:runs_run_change", args=[run.pk]),
        run.agent,
        str(run.pk)[-12:],
    )


def _clock(length: timedelta) -> str:
    seconds = max(0, int(length.total_seconds()))
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
