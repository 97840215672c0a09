"""Rows of this app: stored definitions, their history, and the last configuration file that was accepted."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Stored(models.Model):
    """What rows of every kind have. `stores.database` is their only writer."""

    name = models.CharField(_("name"), max_length=64, unique=True)
    display_name = models.CharField(_("display name"), max_length=120, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    version = models.PositiveIntegerField(_("version"), default=1)
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.display_name or self.name


class StoredDefinition(Stored):
    """What rows of subagents and custom agents have."""

    system_prompt = models.TextField(_("system prompt"))
    model = models.CharField(_("model"), max_length=300, default="inherit")
    tools = models.JSONField(_("tools"), null=True, blank=True)  # null: all; []: none
    skills = models.JSONField(_("skills"), null=True, blank=True)  # null: all enabled; []: none

    class Meta(Stored.Meta):
        abstract = True


VIEW_PROMPT: Final = "subagents.view_prompt"


class ManagedSubagent(StoredDefinition):
    """A subagent kept in the database."""

    description = models.TextField(_("when to use it"))
    disallowed_tools = models.JSONField(_("disallowed tools"), default=list, blank=True)
    max_turns = models.PositiveIntegerField(_("max turns"), null=True, blank=True)
    timeout_seconds = models.PositiveIntegerField(_("timeout (seconds)"), null=True, blank=True)
    token_budget = models.JSONField(_("token budget"), null=True, blank=True)

    class Meta(StoredDefinition.Meta):
        verbose_name = _("subagent")
        verbose_name_plural = _("subagents")
        permissions = [("view_prompt", _("Can read the prompts of subagents"))]


class CustomAgent(StoredDefinition):
    """A custom agent kept in the database."""

    description = models.TextField(_("description"), blank=True)
    subagent_enabled = models.BooleanField(_("may delegate"), default=True)
    allowed_subagents = models.JSONField(_("subagents"), null=True, blank=True)  # null: all enabled; []: none

    class Meta(StoredDefinition.Meta):
        verbose_name = _("custom agent")
        verbose_name_plural = _("custom agents")


class RemoteAgent(Stored):
    """A remote agent kept in the database."""

    description = models.TextField(_("when to use it"))
    graph_id = models.CharField(_("graph or assistant"), max_length=300)
    # Null as documents say it: this deployment.
    url = models.CharField(_("address"), max_length=2_000, null=True, blank=True)  # noqa: DJ001
    headers = models.JSONField(_("headers"), default=dict, blank=True)  # values sealed
    use_env_key = models.JSONField(_("key of the environment"))  # "auto", true or false
    webhook = models.CharField(_("webhook"), max_length=2_000, null=True, blank=True)  # noqa: DJ001
    update_strategy = models.CharField(_("when it is updated"), max_length=16, default="interrupt")
    notify_parent = models.BooleanField(_("tells its parent"), default=True)
    mode = models.CharField(_("mode"), max_length=16, default="isolated")

    class Meta(Stored.Meta):
        verbose_name = _("remote agent")
        verbose_name_plural = _("remote agents")


class RemoteContact(models.Model):
    """The last time a remote agent was spoken to, and what came of it: by its name, whatever its source."""

    name = models.CharField(_("name"), max_length=64, unique=True)
    at = models.DateTimeField(_("last contact"))
    fault = models.CharField(max_length=32, blank=True)  # empty: it answered
    sentence = models.JSONField(default=dict, blank=True)  # the reason, as `engine.reasons.to_plain` says it

    class Meta:
        verbose_name = _("contact with a remote agent")
        verbose_name_plural = _("contacts with remote agents")

    def __str__(self) -> str:
        return self.name


class Revision(models.Model):
    """One entry of a definition's history, whatever the backend: the whole document as it was after the change.

    Of a deletion it is the last document; of a row that could not be read `{"unreadable": its text}`.
    """

    class Action(models.TextChoices):
        CREATED = "created", _("Created")
        CHANGED = "changed", _("Changed")
        ENABLED = "enabled", _("Enabled")
        DISABLED = "disabled", _("Disabled")
        REPAIRED = "repaired", _("Repaired")
        DELETED = "deleted", _("Deleted")
        MOVED = "moved", _("Moved to another backend")
        OUTSIDE = "outside", _("Changed outside")

    kind = models.CharField(_("kind"), max_length=16)  # `name` of a Kind
    name = models.CharField(_("name"), max_length=255)
    number = models.PositiveIntegerField(_("number"))  # 1, 2, … per kind and name
    version = models.CharField(_("version"), max_length=64)
    action = models.CharField(_("action"), max_length=16, choices=Action.choices)
    document = models.JSONField(_("document"))
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("author")
    )
    author_label = models.CharField(_("author"), max_length=200, blank=True)  # kept when the account goes
    created_at = models.DateTimeField(_("created"))

    class Meta:
        verbose_name = _("revision")
        verbose_name_plural = _("revisions")
        ordering = ["kind", "name", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "number"], name="revision_one_per_kind_name_and_number")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.number}"


class GraphLoad(models.Model):
    """What came of loading a graph of langgraph.json, as a worker reports it. Web processes never load one.

    It counts only while `signature` is that of the file as it is now.
    """

    name = models.CharField(_("name"), max_length=64, unique=True)
    signature = models.CharField(max_length=64)
    error = models.TextField(_("error"), blank=True)  # empty: it can run
    description = models.TextField(_("description"), blank=True)
    worker = models.CharField(_("worker"), max_length=120, blank=True)
    loaded_at = models.DateTimeField(_("loaded"))

    class Meta:
        verbose_name = _("loaded graph")
        verbose_name_plural = _("loaded graphs")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ConfigSnapshot(models.Model):
    """The text of the last good config.yaml: a process born while the file is broken runs with it. One row."""

    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    accepted_at = models.DateTimeField()

    class Meta:
        verbose_name = _("accepted configuration")
        verbose_name_plural = _("accepted configurations")

    def __str__(self) -> str:
        return self.sha256[:12]
