"""The shapes of bodies and answers, for the description of the API. What is allowed in them is said in `services`."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from access.api.queries import Page
from runs.event_types import EventType
from runs.services import MAX_TEXT_LENGTH, MultitaskStrategy
from runs.statuses import RunStatus, ThreadStatus

Shape: Any = serializers.Serializer
RUN_STATUSES = [(status.value, status.value) for status in RunStatus]
THREAD_STATUSES = [(status.value, status.value) for status in ThreadStatus]
STRATEGIES = [(strategy.value, strategy.value) for strategy in MultitaskStrategy]
EVENT_TYPES = [(kind.value, kind.value) for kind in EventType]
ACTIONS = [(name, name) for name in ("cancel", "steer", "continue")]
STOPPED_KINDS = [(name, name) for name in ("answer", "task", "message")]


class Thread(Shape):
    id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(choices=THREAD_STATUSES)
    last_seq = serializers.IntegerField(help_text="The number of its newest event.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class ThreadPage(Page):
    results = Thread(many=True)


class NewThread(Shape):
    title = serializers.CharField(required=False, max_length=200, allow_blank=True)


class NewRun(Shape):
    text = serializers.CharField(max_length=MAX_TEXT_LENGTH, help_text="What the agent is asked.")
    agent = serializers.CharField(
        required=False, help_text="`lead_agent` or a custom agent's name; without it the thread's own goes on."
    )
    options = serializers.DictField(required=False, help_text="Request options, such as `subagent_enabled`.")
    multitask_strategy = serializers.ChoiceField(
        choices=STRATEGIES, required=False, help_text="While a run of the thread is active; `enqueue` unless said."
    )


class Why(Shape):
    """In the language of `Accept-Language`."""

    what = serializers.CharField(help_text="One sentence.")
    way_out = serializers.CharField(allow_blank=True, help_text="What can be done about it.")
    limit = serializers.CharField(allow_null=True, help_text="With its unit; null when no setting had a part in it.")
    layer = serializers.CharField(allow_null=True, help_text="The setting that set the limit.")


class Usage(Shape):
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(allow_null=True)
    total_tokens = serializers.IntegerField()
    estimated = serializers.BooleanField()


class Run(Shape):
    id = serializers.UUIDField()
    thread_id = serializers.UUIDField()
    owner = serializers.CharField()
    agent = serializers.CharField()
    title = serializers.CharField(allow_blank=True, help_text="Of a task: what it was asked for, in a few words.")
    parent_id = serializers.UUIDField(allow_null=True, help_text="The run that delegated this one.")
    root_id = serializers.UUIDField(help_text="The lead's run at the top; its own id for a lead's.")
    continues_id = serializers.UUIDField(allow_null=True, help_text="The run whose work it goes on with.")
    status = serializers.ChoiceField(choices=RUN_STATUSES)
    waiting_for = serializers.CharField(allow_null=True, help_text="children, slot, person, model or retry.")
    stop_reason = serializers.CharField(allow_null=True, help_text="token_capped, turn_capped or loop_capped.")
    error_code = serializers.CharField(allow_null=True)
    why = Why(allow_null=True)
    model = serializers.CharField(allow_blank=True)
    turns = serializers.IntegerField(help_text="Model calls so far.")
    usage = Usage(allow_null=True, help_text="null when nothing was reported.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class RunPage(Page):
    results = Run(many=True)


class ChildRun(Shape):
    id = serializers.UUIDField()
    thread_id = serializers.UUIDField()
    agent = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(choices=RUN_STATUSES)


class Limits(Shape):
    max_turns = serializers.IntegerField(required=False, min_value=1, max_value=1_000)
    timeout_seconds = serializers.IntegerField(required=False, min_value=1, max_value=86_400)
    max_tokens = serializers.IntegerField(required=False, min_value=1)


class RunInFull(Run):
    why = Why(help_text="Why it is as it is, whatever its status.")
    error = serializers.CharField(allow_null=True)
    cancel_requested = serializers.BooleanField()
    cancelled_by = serializers.CharField(allow_null=True)
    attempt = serializers.IntegerField()
    worker = serializers.CharField(allow_null=True)
    limits = serializers.DictField(allow_null=True, help_text="Each with the layer that set it; null before it began.")
    options = serializers.DictField()
    unread_messages = serializers.IntegerField(help_text="Messages sent to it that it has not picked up.")
    actions = serializers.ListField(child=serializers.ChoiceField(choices=ACTIONS))
    continue_with = Limits(help_text="What continuing raises when nothing is asked for.")
    children = ChildRun(many=True)


class Stopped(Shape):
    run_id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=STOPPED_KINDS)
    agent = serializers.CharField()
    title = serializers.CharField(allow_blank=True)


class CancelAnswer(Shape):
    already_ended = serializers.BooleanField(help_text="It had ended before; nothing was changed.")
    stopped = Stopped(many=True, help_text="What was told to stop: the run and the children it waits for.")


class SteerBody(Shape):
    text = serializers.CharField(max_length=MAX_TEXT_LENGTH)


class SteerAnswer(Shape):
    message_id = serializers.UUIDField(help_text="The receipt is an event with this id: `run.steer_read`.")


class ContinueBody(Shape):
    limits = Limits(required=False, help_text="What to raise; without it the limit that stopped the run is doubled.")


class Event(Shape):
    seq = serializers.IntegerField()
    type = serializers.ChoiceField(choices=EVENT_TYPES)
    at = serializers.DateTimeField()
    run_id = serializers.UUIDField()
    data = serializers.DictField()


class Events(Shape):
    events = Event(many=True)
    next = serializers.IntegerField(help_text="The next `after`.")
    more = serializers.BooleanField(help_text="Whether there is more at once.")
