"""Rows of what happens: threads, runs, their append-only transcript and log, workers."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.ids import new_id
from runs.protocol_models import Assistant as Assistant
from runs.protocol_models import AssistantVersion as AssistantVersion
from runs.protocol_models import StoreItem as StoreItem
from runs.querysets import EventQuerySet, RunQuerySet, ThreadQuerySet
from runs.statuses import RunStatus, ThreadStatus, WaitingFor

RUN_STATUS_LABELS = {
    RunStatus.PENDING: _("Queued"),
    RunStatus.RUNNING: _("Running"),
    RunStatus.SUCCESS: _("Done"),
    RunStatus.ERROR: _("Failed"),
    RunStatus.TIMEOUT: _("Timed out"),
    RunStatus.INTERRUPTED: _("Interrupted"),
    RunStatus.CANCELLED: _("Cancelled"),
}


class Thread(models.Model):
    """A conversation. A child run has a thread of its own, which `parent_run` ties to the run that asked for it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="threads", verbose_name=_("owner"))
    parent_run = models.ForeignKey("Run", models.CASCADE, null=True, blank=True, related_name="child_threads")
    title = models.CharField(_("title"), max_length=200, blank=True)
    status = models.CharField(max_length=12, default=ThreadStatus.IDLE.value)
    last_seq = models.BigIntegerField(default=0)  # the seq of the newest event; given out under the row's lock
    metadata = models.JSONField(default=dict, blank=True)
    values = models.JSONField(default=dict, blank=True)  # of the state, besides the messages: see runs.history
    temporary = models.BooleanField(default=False)  # of a run without a thread of its own: goes when that has ended
    ttl_minutes = models.FloatField(null=True, blank=True)  # without a change; null: until somebody deletes it
    ttl_strategy = models.CharField(max_length=12, blank=True)  # what happens then: "delete" or "keep_latest"
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("updated"))

    objects = ThreadQuerySet.as_manager()

    class Meta:
        verbose_name = _("thread")
        verbose_name_plural = _("threads")
        ordering = ["-updated_at"]
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="thread_owner_recent"),
            models.Index(fields=["updated_at"], condition=Q(temporary=True), name="thread_temporary"),
            models.Index(fields=["updated_at"], condition=Q(ttl_minutes__isnull=False), name="thread_with_ttl"),
        ]

    def __str__(self) -> str:
        return self.title or str(self.pk)


class Run(models.Model):
    """One execution of an agent on a thread. `lifecycle` is the only writer of status, fence and attempt."""

    id = models.UUIDField("ID", primary_key=True, default=new_id, editable=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="runs", verbose_name=_("thread"))
    agent = models.CharField(_("agent"), max_length=64)
    status = models.CharField(
        _("status"), max_length=12, choices=list(RUN_STATUS_LABELS.items()), default=RunStatus.PENDING.value
    )
    waiting_for = models.CharField(max_length=8, blank=True, default=WaitingFor.NOTHING.value)

    # Execution: who holds the run, and since when.
    fence = models.BigIntegerField(default=0)  # random per claim: a counter could be issued twice after a lost commit
    attempt = models.PositiveIntegerField(_("attempt"), default=0)  # claims so far, hand-overs included
    lost_workers = models.PositiveIntegerField(default=0)  # claims of a run that its worker had not given back
    queue_id = models.BigIntegerField(null=True, unique=True)  # its django-q2 row while it is queued or running
    worker = models.CharField(_("worker"), max_length=120, blank=True)
    cancel_requested = models.CharField(max_length=12, blank=True)  # the status the run shall end with
    cancelled_by = models.CharField(max_length=150, blank=True)

    # Place in the tree.
    parent = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="children", db_index=False)
    root_id = models.UUIDField(db_index=True)  # the lead at the top; its own id for a lead
    depth = models.PositiveSmallIntegerField(_("depth"), default=0)
    tool_call_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - unique with parent; leads have none
    title = models.CharField(_("task"), max_length=200, blank=True)  # the delegation's description
    # The run whose work this one goes on with under a higher limit; nobody waits for it but the person who asked.
    continues = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="continued_by", db_index=False
    )

    # What it runs with.
    due_at = models.DateTimeField(null=True, blank=True)  # no worker takes it before
    from_seq = models.BigIntegerField(null=True, blank=True)  # the checkpoint it begins at; null: where the thread is
    base_seq = models.BigIntegerField(default=0)  # the thread's seq just before this run: where its stream begins
    input = models.JSONField(
        default=list, blank=True
    )  # messages that wait behind another run; [] once in the transcript
    steers = models.JSONField(default=list, blank=True)  # messages the running run has not picked up yet
    options = models.JSONField(_("request options"), default=dict, blank=True)  # what the request asked for
    metadata = models.JSONField(
        _("notes of the server"), default=dict, blank=True
    )  # allowed_subagents, clamps: written by the server
    definition = models.JSONField(_("definition"), default=dict, blank=True)  # exactly what it ran with

    # How it went.
    model = models.CharField(_("model"), max_length=120, blank=True)
    stop_reason = models.CharField(_("stop reason"), max_length=24, blank=True)
    stop_detail = models.JSONField(default=dict, blank=True)
    error_code = models.CharField(max_length=32, blank=True)
    error = models.TextField(_("error"), blank=True)
    model_calls = models.PositiveIntegerField(_("turns"), default=0)
    input_tokens = models.BigIntegerField(null=True, blank=True)  # null: never reported, which is not zero
    output_tokens = models.BigIntegerField(null=True, blank=True)
    cached_tokens = models.BigIntegerField(null=True, blank=True)
    guard_tokens = models.BigIntegerField(default=0)  # what budgets count: estimates where nothing was reported
    usage_estimated = models.BooleanField(default=False)
    created_at = models.DateTimeField(_("created"))
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    pruned = models.BooleanField(default=False)  # its deltas and its children's steps are no longer kept

    objects = RunQuerySet.as_manager()

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ["-created_at"]
        constraints = [
            # The database, not the code, has the last word on "one at a time" and "one child per call".
            models.UniqueConstraint(
                fields=["thread"], condition=Q(status="running"), name="run_one_running_per_thread"
            ),
            models.UniqueConstraint(fields=["parent", "tool_call_id"], name="run_one_child_per_call"),
        ]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(status__in=["pending", "running"]), name="run_active"),
            models.Index(fields=["cancel_requested"], condition=~Q(cancel_requested=""), name="run_cancel_requested"),
            models.Index(fields=["agent", "created_at"], condition=Q(parent__isnull=False), name="run_of_subagent"),
            models.Index(fields=["ended_at"], condition=Q(pruned=False, ended_at__isnull=False), name="run_to_prune"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.pk}"

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


class Message(models.Model):
    """Append-only transcript, already in wire form (a JSON text), so that nobody parses it on the way out."""

    pk = models.CompositePrimaryKey("thread_id", "seq")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="messages", db_index=False)
    seq = models.BigIntegerField()
    run_id = models.UUIDField()
    data = models.TextField()
    # The number of the `thread.rewound` event that took it off the thread's line; null: part of the state.
    left_at = models.BigIntegerField(null=True)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["thread_id", "seq"]

    def __str__(self) -> str:
        return f"{self.thread_id}/{self.seq}"


class Event(models.Model):
    """One fact a screen may show; gapless per thread. A `message` event is the Message with the same (thread, seq)."""

    pk = models.CompositePrimaryKey("thread_id", "seq")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    run_id = models.UUIDField()
    type = models.CharField(max_length=16)
    at = models.DateTimeField()
    data = models.TextField(blank=True)  # a JSON object; empty for `message`

    objects = EventQuerySet.as_manager()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["thread_id", "seq"]
        indexes = [
            models.Index(
                fields=["thread", "seq"],
                condition=Q(type__in=["thread.rewound", "state.updated"]),
                name="event_of_history",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id}/{self.seq} {self.type}"


class GraphCheckpoint(models.Model):
    """A step of a graph's state, as LangGraph's checkpointer keeps it; `runs.graphs.checkpoints` is its only writer.

    `data` is LangGraph's own encoding; `shown` is the state in JSON for readers that do not load LangGraph:
    {"values": all but the messages, "messages": [id, or the whole message where the transcript differs],
    "next": [node], "tasks": [{"id", "name", "interrupts", …}]}; null until the step has been told.
    """

    pk = models.CompositePrimaryKey("thread_id", "ns", "checkpoint_id")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="graph_checkpoints", db_index=False)
    ns = models.CharField(max_length=1000, blank=True)  # "" is the graph itself, else the path to a graph within
    checkpoint_id = models.CharField(max_length=64)  # in the order of time
    parent_id = models.CharField(max_length=64, blank=True)
    run_id = models.UUIDField()
    seq = models.BigIntegerField()  # the thread's last number when it was written
    kind = models.CharField(max_length=16)
    data = models.BinaryField()
    metadata_kind = models.CharField(max_length=16)
    metadata = models.BinaryField()
    shown = models.JSONField(null=True, blank=True)
    # Which run told `shown` last, and what stood there before that run: a rollback puts it back.
    told_by = models.UUIDField(null=True)
    shown_before = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("checkpoint of a graph")
        verbose_name_plural = _("checkpoints of graphs")
        ordering = ["thread_id", "ns", "-checkpoint_id"]

    def __str__(self) -> str:
        return f"{self.thread_id}/{self.ns}/{self.checkpoint_id}"


class GraphBlob(models.Model):
    """One version of one channel of a graph's state; checkpoints name the versions they hold."""

    pk = models.CompositePrimaryKey("thread_id", "ns", "channel", "version")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="+", db_index=False)
    ns = models.CharField(max_length=1000, blank=True)
    channel = models.CharField(max_length=300)
    version = models.CharField(max_length=120)
    run_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=16)
    data = models.BinaryField()

    class Meta:
        verbose_name = _("value of a graph")
        verbose_name_plural = _("values of graphs")

    def __str__(self) -> str:
        return f"{self.thread_id}/{self.ns}/{self.channel}/{self.version}"


class GraphWrite(models.Model):
    """What a task of a step has written: a node that is done is not done again when its step is taken up anew."""

    pk = models.CompositePrimaryKey("thread_id", "ns", "checkpoint_id", "task_id", "idx")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="+", db_index=False)
    ns = models.CharField(max_length=1000, blank=True)
    checkpoint_id = models.CharField(max_length=64)
    task_id = models.CharField(max_length=64)
    idx = models.IntegerField()  # negative: one of LangGraph's own, of which there is one per task
    channel = models.CharField(max_length=300)
    path = models.CharField(max_length=1000, blank=True)
    kind = models.CharField(max_length=16)
    data = models.BinaryField()
    # Which run wrote it, and the value of an earlier run that it replaced: a rollback puts that back.
    run_id = models.UUIDField(null=True)
    run_before = models.UUIDField(null=True)
    kind_before = models.CharField(max_length=16, blank=True)
    data_before = models.BinaryField(null=True)

    class Meta:
        verbose_name = _("write of a graph")
        verbose_name_plural = _("writes of graphs")

    def __str__(self) -> str:
        return f"{self.thread_id}/{self.ns}/{self.checkpoint_id}/{self.task_id}/{self.idx}"


class WorkerHeartbeat(models.Model):
    """One row per worker process; a row older than two leases is a worker that is gone."""

    name = models.CharField(_("worker"), max_length=120, primary_key=True)  # host:pid
    slots = models.PositiveIntegerField(_("slots"))
    running = models.PositiveIntegerField(_("running"), default=0)
    waiting = models.PositiveIntegerField(_("waiting"), default=0)
    started_at = models.DateTimeField(_("started"))
    seen_at = models.DateTimeField(_("seen"), db_index=True)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return self.name


class WebhookDelivery(models.Model):
    """What a URL is to be told when a run has ended. No key to the run: the delivery outlives a run that is deleted.

    It waits (`next_at` null) until its run has ended; then `body` is written once and is the same for every attempt.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)  # by which receivers know repeats
    run_id = models.UUIDField(db_index=True)
    url = models.URLField(max_length=2000)
    body = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True, blank=True)  # of the next attempt, or the end of the one under way
    done_at = models.DateTimeField(null=True, blank=True)  # delivered or given up
    delivered = models.BooleanField(default=False)
    error = models.CharField(max_length=300, blank=True)  # of the latest attempt
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        indexes = [
            models.Index(fields=["run_id"], condition=Q(next_at=None, done_at=None), name="webhook_waiting"),
            models.Index(fields=["next_at"], condition=Q(done_at=None), name="webhook_due"),
            models.Index(fields=["done_at"], condition=Q(done_at__isnull=False), name="webhook_done"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} → {self.url}"
