"""Runs over HTTP: list them, ask why one is as it is, stop it, say something to it, go on from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from rest_framework import serializers
from rest_framework.response import Response

from access.api.described import operation
from access.api.queries import CursorQuery, asked, cursor_page
from access.api.repeats import IDEMPOTENCY_KEY, PROBLEMS, once
from runs import models, services
from runs.api import examples, shapes
from runs.api import serializers as body
from runs.api.views import READ, WORK, RunsView, body_of
from runs.continuing import continue_run
from runs.statuses import ACTIVE, ENDED

if TYPE_CHECKING:
    from uuid import UUID

    from runs.querysets import RunQuerySet

_KINDS: Final = ("lead", "task")


class RunQuery(CursorQuery):
    status = serializers.ChoiceField(choices=body.RUN_STATUSES, required=False)
    active = serializers.BooleanField(required=False, default=None, allow_null=True, help_text="Has not ended.")
    kind = serializers.ChoiceField(choices=_KINDS, required=False, help_text="A lead's, or a subagent's.")
    agent = serializers.CharField(required=False, max_length=64)
    owner = serializers.CharField(required=False, max_length=150, help_text="A person's name.")
    thread = serializers.UUIDField(required=False)
    parent = serializers.UUIDField(required=False)
    root = serializers.UUIDField(required=False, help_text="A lead's run and everything below it.")
    stop_reason = serializers.CharField(required=False, max_length=24)
    error_code = serializers.CharField(required=False, max_length=32)
    created_after = serializers.DateTimeField(required=False)
    created_before = serializers.DateTimeField(required=False)


_COLUMNS: Final = {
    "status": "status",
    "agent": "agent",
    "owner": f"thread__owner__{get_user_model().USERNAME_FIELD}",
    "thread": "thread_id",
    "parent": "parent_id",
    "root": "root_id",
    "stop_reason": "stop_reason",
    "error_code": "error_code",
    "created_after": "created_at__gte",
    "created_before": "created_at__lt",
}


class Runs(RunsView):
    needs = {"GET": READ}
    problems = {"GET": ("invalid", "unavailable")}

    @operation(
        "List runs, the newest first",
        description="One's own; everybody's for whoever has the permission `runs.view_run`.",
        answer=body.RunPage,
        shows=examples.page(examples.RUN),
        parameters=(RunQuery,),
        operation_id="runs_list",
    )
    def get(self, request: Any) -> Response:
        query = asked(request, RunQuery)
        rows = _wanted(models.Run.objects.facts_visible_to(request.user), query).select_related("thread__owner")
        # Ids are ordered by time, and unlike times no two are the same.
        return Response(cursor_page(request, rows, ordering="-id", page_size=query["page_size"], shape=shapes.run))


def _wanted(rows: RunQuerySet, query: dict[str, Any]) -> RunQuerySet:
    rows = rows.filter(**{column: query[name] for name, column in _COLUMNS.items() if name in query})
    if query["active"] is not None:
        rows = rows.filter(status__in=ACTIVE if query["active"] else ENDED)
    if "kind" in query:
        rows = rows.filter(parent__isnull=query["kind"] == "lead")
    return rows


class Run(RunsView):
    needs = {"GET": READ}
    problems = {"GET": ("not_found", "unavailable")}

    @operation(
        "Read one run and why it is as it is",
        answer=body.RunInFull,
        shows=examples.RUN_IN_FULL,
        operation_id="runs_read",
    )
    def get(self, request: Any, run_id: UUID) -> Response:
        return Response(shapes.run_in_full(self.run(run_id)))


class RunCancel(RunsView):
    needs = {"POST": WORK}
    problems = {"POST": ("not_found", "unavailable")}

    @operation(
        "Stop a run and the children it waits for",
        description="What it had done is kept. The answer comes before the end, which is an event.",
        answer=body.CancelAnswer,
        shows=examples.CANCELLED,
        status=202,
        operation_id="runs_cancel",
    )
    def post(self, request: Any, run_id: UUID) -> Response:
        run = self.run_to_act_on(run_id)
        stopped = services.stop_run(run_id=run.pk, by=self.who)
        ended = all(one.run_id != run.pk for one in stopped)
        return Response({"already_ended": ended, "stopped": [shapes.stopped(one) for one in stopped]}, status=202)


class RunSteer(RunsView):
    needs = {"POST": WORK}
    problems = {"POST": ("not_found", "invalid", "not_steerable", "unavailable", *PROBLEMS)}

    @operation(
        "Say something to a run while it works",
        description="It picks the message up before its next model call; the event `run.steer_read` is the receipt.",
        answer=body.SteerAnswer,
        shows=examples.STEERED,
        body=body.SteerBody,
        sends=examples.STEER,
        status=202,
        parameters=(IDEMPOTENCY_KEY,),
        operation_id="runs_steer",
    )
    @once
    def post(self, request: Any, run_id: UUID) -> Response:
        run = self.run_to_act_on(run_id, by_owner_only=True)
        sent = body_of(request, ("text",))
        message_id = services.steer_run(run_id=run.pk, text=sent.get("text", ""), by=self.who)
        return Response({"message_id": str(message_id)}, status=202)


class RunContinue(RunsView):
    needs = {"POST": WORK}
    problems = {
        "POST": (
            "not_found",
            "invalid",
            "thread_busy",
            "not_continuable",
            "too_many_pending",
            "unavailable",
            *PROBLEMS,
        )
    }

    @operation(
        "Go on from where a run was stopped",
        description="A new run from its transcript, with the limit raised that stopped it.",
        answer=body.RunInFull,
        shows={**examples.RUN_IN_FULL, **examples.QUEUED},
        body=body.ContinueBody,
        sends=examples.CONTINUE,
        status=202,
        parameters=(IDEMPOTENCY_KEY,),
        operation_id="runs_continue",
    )
    @once
    def post(self, request: Any, run_id: UUID) -> Response:
        run = self.run_to_act_on(run_id)
        sent = body_of(request, ("limits",))
        started = continue_run(run_id=run.pk, limits=sent.get("limits"))
        address = request.path.rpartition("/runs/")[0]
        shown = shapes.run_in_full(self.run(started.pk))
        return Response(shown, status=202, headers={"Location": f"{address}/runs/{started.pk}"})
