"""Conversations over HTTP: one's own, their events, and new runs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.response import Response

from access.api.described import operation
from access.api.queries import CursorQuery, asked, cursor_page
from access.api.repeats import IDEMPOTENCY_KEY, PROBLEMS, once
from runs import agents, log, models, services
from runs.api import examples, shapes
from runs.api import serializers as body
from runs.api.views import READ, WORK, RunsView, body_of
from runs.errors import BadInput, ThreadNotFound

if TYPE_CHECKING:
    from uuid import UUID

_MOST_EVENTS: Final = 2_000
_STRATEGIES: Final = {strategy.value: strategy for strategy in services.MultitaskStrategy}


class ThreadQuery(CursorQuery):
    status = serializers.ChoiceField(choices=body.THREAD_STATUSES, required=False)
    q = serializers.CharField(required=False, allow_blank=True, max_length=200, help_text="Occurs in the title.")


class EventQuery(serializers.Serializer):  # type: ignore[type-arg]
    after = serializers.IntegerField(min_value=0, max_value=2**63 - 1, default=0, help_text="The newest number seen.")
    limit = serializers.IntegerField(min_value=1, max_value=_MOST_EVENTS, default=500)


class Threads(RunsView):
    needs = {"GET": READ, "POST": WORK}
    problems = {"GET": ("invalid", "unavailable"), "POST": ("invalid", "unavailable", *PROBLEMS)}

    @operation(
        "List one's conversations, the latest first",
        answer=body.ThreadPage,
        shows=examples.page(examples.THREAD),
        parameters=(ThreadQuery,),
        operation_id="threads_list",
    )
    def get(self, request: Any) -> Response:
        query = asked(request, ThreadQuery)
        rows = models.Thread.objects.visible_to(request.user).chats()
        if "status" in query:
            rows = rows.filter(status=query["status"])
        if query.get("q"):
            rows = rows.filter(title__icontains=query["q"])
        size = query["page_size"]
        return Response(cursor_page(request, rows, ordering="-updated_at", page_size=size, shape=shapes.thread))

    @operation(
        "Begin a conversation",
        answer=body.Thread,
        shows=examples.THREAD,
        body=body.NewThread,
        sends=examples.NEW_THREAD,
        status=201,
        parameters=(IDEMPOTENCY_KEY,),
        operation_id="threads_create",
    )
    @once
    def post(self, request: Any) -> Response:
        sent = body_of(request, ("title",))
        title = services.checked_title(sent["title"]) if sent.get("title") else ""
        thread = services.create_thread(owner=request.user, title=title)
        return Response(shapes.thread(thread), status=201, headers={"Location": f"{request.path}/{thread.pk}"})


class Thread(RunsView):
    needs = {"GET": READ}
    problems = {"GET": ("not_found", "unavailable")}

    @operation("Read one conversation", answer=body.Thread, shows=examples.THREAD, operation_id="threads_read")
    def get(self, request: Any, thread_id: UUID) -> Response:
        return Response(shapes.thread(self.own_thread(thread_id)))


class ThreadEvents(RunsView):
    needs = {"GET": READ}
    problems = {"GET": ("not_found", "invalid", "unavailable")}

    @operation(
        "What happened on a conversation, past a number",
        description="Of a subagent's thread too. The pieces of a reply that is stored whole are left out.",
        answer=body.Events,
        shows=examples.EVENTS,
        parameters=(EventQuery,),
        operation_id="threads_events",
    )
    def get(self, request: Any, thread_id: UUID) -> Response:
        query = asked(request, EventQuery)
        thread = self.own_thread(thread_id)
        rows = log.read(thread.pk, query["after"], limit=query["limit"])
        shown = log.without_settled(rows, log.settled_upto(thread.pk)) if rows else []
        place = rows[-1].seq if rows else query["after"]
        more = len(rows) == query["limit"] and place < log.last_seqs([thread.pk]).get(thread.pk, 0)
        return Response({"events": [shapes.event(row) for row in shown], "next": place, "more": more})


class ThreadRuns(RunsView):
    needs = {"POST": WORK}
    problems = {"POST": ("not_found", "invalid", "thread_busy", "too_many_pending", "unavailable", *PROBLEMS)}

    @operation(
        "Ask the agent of a conversation",
        answer=body.RunInFull,
        shows={**examples.RUN_IN_FULL, **examples.QUEUED},
        body=body.NewRun,
        sends=examples.NEW_RUN,
        status=202,
        parameters=(IDEMPOTENCY_KEY,),
        operation_id="threads_runs_create",
    )
    @once
    def post(self, request: Any, thread_id: UUID) -> Response:
        sent = body_of(request, ("text", "agent", "options", "multitask_strategy"))
        thread = self.own_thread(thread_id)
        if thread.parent_run_id is not None:
            raise ThreadNotFound(thread_id)  # a subagent's thread is its lead's to talk to
        agent = agents.find(sent["agent"], field="agent") if sent.get("agent") is not None else None
        options = {} if sent.get("options") is None else sent["options"]
        if isinstance(options, dict) and options.get("agent_name") is not None:
            agents.find(options["agent_name"], field="options.agent_name")
        run = services.start_run(
            thread=thread,
            text=sent.get("text", ""),
            agent=agent,
            options=options,
            multitask=_strategy(sent.get("multitask_strategy")),
        )
        address = request.path.rpartition("/threads/")[0]
        started = self.run(run.pk)
        return Response(shapes.run_in_full(started), status=202, headers={"Location": f"{address}/runs/{run.pk}"})


def _strategy(written: object) -> services.MultitaskStrategy:
    if written is None:
        return services.MultitaskStrategy.ENQUEUE
    if not isinstance(written, str) or written not in _STRATEGIES:
        raise BadInput("multitask_strategy", gettext("expected %(names)s") % {"names": ", ".join(_STRATEGIES)})
    return _STRATEGIES[written]
