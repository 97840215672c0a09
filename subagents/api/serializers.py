"""The shapes of bodies and answers, for the description of the API. What is allowed in them is said in `services`."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from access.api.schema import ProblemSerializer
from subagents.catalogue import State
from subagents.definitions import Source
from subagents.models import Revision

Shape: Any = serializers.Serializer
SOURCES = [(source.value, source.value) for source in Source]
STATES = [(state.value, state.value) for state in State]


def names(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), **options)


class Note(Shape):
    """A sentence about an entry; `code` never changes, `detail` is in the caller's language."""

    code = serializers.CharField()
    detail = serializers.CharField()


class TokenBudgetDocument(Shape):
    """What is left out is inherited."""

    enabled = serializers.BooleanField(required=False)
    max_tokens = serializers.IntegerField(required=False, min_value=1)
    warn_threshold = serializers.FloatField(required=False)


class SubagentChanges(Shape):
    """Only the fields that are sent change; null sets a field back to what leaving it out means."""

    display_name = serializers.CharField(required=False, max_length=120, allow_blank=True, allow_null=True)
    description = serializers.CharField(required=False, max_length=2_000, help_text="When the lead should pick it.")
    system_prompt = serializers.CharField(
        required=False, max_length=200_000, help_text="Taken as it is; null in answers to whoever may not read prompts."
    )
    model = serializers.CharField(required=False, allow_null=True, help_text="`inherit` or a configured model's name.")
    tools = names(required=False, allow_null=True, help_text="null: all of the lead's; []: none; list: only these.")
    disallowed_tools = names(required=False, allow_null=True)
    skills = names(required=False, allow_null=True, help_text="null: all enabled ones; []: none; list: only these.")
    max_turns = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=1_000, help_text="Model calls; null: inherit."
    )
    timeout_seconds = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=86_400)
    token_budget = TokenBudgetDocument(required=False, allow_null=True)
    enabled = serializers.BooleanField(required=False, allow_null=True)


class SubagentDocument(SubagentChanges):
    """A whole definition. What is left out gets its default."""

    name = serializers.CharField(max_length=64, help_text="Letters a-z, digits, hyphens. Cannot be changed later.")
    description = serializers.CharField(max_length=2_000, help_text="When the lead should pick it.")
    system_prompt = serializers.CharField(max_length=200_000, help_text="Taken as it is.")


class ShownSubagentDocument(SubagentChanges):
    """The definition as its author wrote it, before any override."""

    name = serializers.CharField()
    system_prompt = serializers.CharField(allow_null=True, help_text="null for whoever may not read prompts.")


class TokenBudget(Shape):
    enabled = serializers.BooleanField()
    max_tokens = serializers.IntegerField()
    warn_threshold = serializers.FloatField()


class Effective(Shape):
    """What a run gets, after every layer."""

    model = serializers.CharField()
    tools = names(allow_null=True)
    disallowed_tools = names()
    skills = names(allow_null=True)
    max_turns = serializers.IntegerField()
    timeout_seconds = serializers.IntegerField()
    token_budget = TokenBudget()


class Layer(Shape):
    layer = serializers.CharField(help_text="`default`, `builtin`, `managed`, or a path in config.yaml.")
    value = serializers.JSONField()


class LayeredField(Shape):
    value = serializers.JSONField(help_text="The value in force.")
    layer = serializers.CharField(help_text="The layer that won.")
    layers = Layer(many=True, help_text="Every layer that says something, the winner first.")


class Standing(Shape):
    state = serializers.ChoiceField(choices=STATES)
    reason = Note(allow_null=True, help_text="Why it does not run.")
    warnings = Note(many=True)
    problems = names(help_text="Of an entry that cannot be read, each with its place.")
    version = serializers.CharField(allow_null=True, help_text="Opaque. In quotes it is the ETag.")
    updated_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    recent_runs = serializers.IntegerField(help_text="Runs in the last seven days.")


class Subagent(Standing):
    name = serializers.CharField()
    source = serializers.ChoiceField(choices=SOURCES)
    conflict = serializers.BooleanField(help_text="A stronger source holds the name; this entry does not run.")
    shadowed_by = serializers.ChoiceField(choices=SOURCES, allow_null=True)
    editable = serializers.BooleanField()
    overridden = names(help_text="Fields that `subagents.agents.<name>` of config.yaml sets.")
    definition = ShownSubagentDocument(allow_null=True)
    effective = Effective(allow_null=True)
    layers = serializers.DictField(child=LayeredField(), required=False, help_text="With `?expand=layers`.")


class EffectiveAnswer(Shape):
    name = serializers.CharField()
    source = serializers.ChoiceField(choices=SOURCES)
    effective = Effective(allow_null=True)
    fields_with_layers = serializers.DictField(child=LayeredField())


class AgentChanges(Shape):
    """Only the fields that are sent change; null sets a field back to what leaving it out means."""

    display_name = serializers.CharField(required=False, max_length=120, allow_blank=True, allow_null=True)
    description = serializers.CharField(required=False, max_length=2_000, allow_blank=True, allow_null=True)
    system_prompt = serializers.CharField(required=False, max_length=200_000)
    model = serializers.CharField(required=False, allow_null=True)
    tools = names(required=False, allow_null=True)
    skills = names(required=False, allow_null=True)
    subagent_enabled = serializers.BooleanField(required=False, allow_null=True)
    allowed_subagents = names(
        required=False, allow_null=True, help_text="null: all enabled subagents; []: none; list: only these."
    )
    enabled = serializers.BooleanField(required=False, allow_null=True)


class AgentDocument(AgentChanges):
    """A whole custom agent. What is left out gets its default."""

    name = serializers.CharField(max_length=64)
    system_prompt = serializers.CharField(max_length=200_000)


class ShownAgentDocument(AgentChanges):
    """The custom agent as its author wrote it."""

    name = serializers.CharField()
    system_prompt = serializers.CharField(allow_null=True, help_text="null for whoever may not read prompts.")


class Agent(Standing):
    name = serializers.CharField()
    editable = serializers.BooleanField()
    definition = ShownAgentDocument(allow_null=True)
    resolved_subagents = names(help_text="What its scope gives at this moment.")
    missing_subagents = names(help_text="What it selects and no entry bears.")


class RemoteChanges(Shape):
    """Only the fields that are sent change. `headers` is replaced as a whole; a mask in it keeps what is stored."""

    display_name = serializers.CharField(required=False, max_length=120, allow_blank=True, allow_null=True)
    description = serializers.CharField(required=False, max_length=2_000, help_text="When the lead should pick it.")
    graph_id = serializers.CharField(required=False, max_length=300, help_text="A graph's name or an assistant's id.")
    url = serializers.CharField(
        required=False, allow_null=True, max_length=2_000, help_text="null: a graph or agent of this deployment."
    )
    headers = serializers.DictField(
        child=serializers.CharField(allow_blank=True),
        required=False,
        allow_null=True,
        help_text="Write-only values: answers hold masks. Another host or port needs them again.",
    )
    use_env_key = serializers.JSONField(required=False, allow_null=True, help_text="`auto`, true or false.")
    webhook = serializers.CharField(required=False, allow_null=True, max_length=2_000)
    update_strategy = serializers.ChoiceField(
        choices=[(word, word) for word in ("interrupt", "enqueue")], required=False, allow_null=True
    )
    notify_parent = serializers.BooleanField(required=False, allow_null=True)
    mode = serializers.ChoiceField(
        choices=[(word, word) for word in ("isolated", "fork")], required=False, allow_null=True
    )
    enabled = serializers.BooleanField(required=False, allow_null=True)


class RemoteDocument(RemoteChanges):
    """A whole remote agent. What is left out gets its default."""

    name = serializers.CharField(max_length=64)
    description = serializers.CharField(max_length=2_000)
    graph_id = serializers.CharField(max_length=300)


class ShownRemoteDocument(RemoteDocument):
    """The remote agent as its author wrote it, the values of its headers masked."""


class RemoteContact(Shape):
    at = serializers.DateTimeField()
    fault = serializers.CharField(allow_blank=True, help_text="Empty: it answered. Otherwise a word that stays.")
    detail = serializers.CharField(allow_blank=True, help_text="What is wrong, in the caller's language.")


class Remote(Shape):
    name = serializers.CharField()
    source = serializers.ChoiceField(choices=SOURCES)
    state = serializers.ChoiceField(choices=STATES)
    reason = Note(allow_null=True, help_text="Why it does not run.")
    warnings = Note(many=True)
    problems = names(help_text="Of an entry that cannot be read, each with its place.")
    conflict = serializers.BooleanField(help_text="A stronger source holds the name; this entry does not run.")
    shadowed_by = serializers.ChoiceField(choices=SOURCES, allow_null=True)
    editable = serializers.BooleanField()
    version = serializers.CharField(allow_null=True, help_text="Opaque. In quotes it is the ETag.")
    updated_at = serializers.DateTimeField(allow_null=True)
    definition = ShownRemoteDocument(allow_null=True)
    last_contact = RemoteContact(allow_null=True)


class Page(Shape):
    count = serializers.IntegerField()
    page = serializers.IntegerField()
    pages = serializers.IntegerField()
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class SubagentPage(Page):
    results = Subagent(many=True)


class AgentPage(Page):
    results = Agent(many=True)


class RemotePage(Page):
    results = Remote(many=True)


class Version(Shape):
    number = serializers.IntegerField()
    version = serializers.CharField()
    action = serializers.ChoiceField(choices=[(action.value, action.value) for action in Revision.Action])
    author = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    document = serializers.JSONField(help_text="The whole definition as it was after the change.")


class VersionPage(Page):
    results = Version(many=True)


class BulkChange(Shape):
    action = serializers.ChoiceField(choices=[("enable", "enable"), ("disable", "disable")])
    names = names(min_length=1, max_length=500)


class BulkResult(Shape):
    name = serializers.CharField()
    result = serializers.ChoiceField(choices=[(word, word) for word in ("changed", "unchanged", "refused")])
    problem = ProblemSerializer(allow_null=True)


class BulkAnswer(Shape):
    results = BulkResult(many=True)


class Reference(Shape):
    name = serializers.CharField()
    display_name = serializers.CharField(allow_blank=True)


class References(Shape):
    agents = Reference(many=True)
