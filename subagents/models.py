"""Rows of this app: managed definitions, and the last configuration file that was accepted."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ManagedSubagent(models.Model):
    """A definition kept in the database. `stores.database` is its only writer."""

    name = models.CharField(_("name"), max_length=64, unique=True)
    display_name = models.CharField(_("display name"), max_length=120, blank=True)
    description = models.TextField(_("when to use it"))
    system_prompt = models.TextField(_("system prompt"))
    model = models.CharField(_("model"), max_length=300, default="inherit")
    tools = models.JSONField(_("tools"), null=True, blank=True)  # null: all of the lead's; []: none
    disallowed_tools = models.JSONField(_("disallowed tools"), default=list, blank=True)
    skills = models.JSONField(_("skills"), null=True, blank=True)  # null: all enabled; []: none
    max_turns = models.PositiveIntegerField(_("max turns"), null=True, blank=True)
    timeout_seconds = models.PositiveIntegerField(_("timeout (seconds)"), null=True, blank=True)
    token_budget = models.JSONField(_("token budget"), null=True, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    version = models.PositiveIntegerField(_("version"), default=1)
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("updated"))
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("last changed by"),
    )

    class Meta:
        verbose_name = _("subagent")
        verbose_name_plural = _("subagents")
        ordering = ["name"]
        permissions = [("view_prompt", _("Can read the prompts of subagents"))]

    def __str__(self) -> str:
        return self.display_name or self.name


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
