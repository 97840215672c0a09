"""Rows that only programs know: assistants they made, and what they keep between threads. Part of runs.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.ids import new_id


class Assistant(models.Model):
    """An agent with choices of a client's own, kept under an id: what runs that name it begin with."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="assistants")
    version = models.PositiveIntegerField(default=1)  # the one in force; its values are repeated here
    graph_id = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    config = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        verbose_name = _("assistant")
        verbose_name_plural = _("assistants")
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["owner", "-created_at"], name="assistant_owner_recent")]

    def __str__(self) -> str:
        return f"{self.name} ({self.graph_id})"


class AssistantVersion(models.Model):
    """An assistant as it was; versions are never changed."""

    pk = models.CompositePrimaryKey("assistant_id", "version")
    assistant = models.ForeignKey(Assistant, models.CASCADE, related_name="versions", db_index=False)
    version = models.PositiveIntegerField()
    graph_id = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    config = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("version of an assistant")
        verbose_name_plural = _("versions of assistants")
        ordering = ["assistant_id", "-version"]

    def __str__(self) -> str:
        return f"{self.assistant_id} v{self.version}"


class StoreItem(models.Model):
    """A value that programs keep between threads, under a namespace and a key."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="store_items")
    # Labels, each followed by a unit separator, so that a prefix of text is a prefix of labels and nothing else.
    namespace = models.CharField(max_length=1000)
    key = models.CharField(max_length=300)
    value = models.JSONField()
    ttl_minutes = models.FloatField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        verbose_name = _("stored item")
        verbose_name_plural = _("stored items")
        ordering = ["namespace", "key"]
        constraints = [models.UniqueConstraint(fields=["owner", "namespace", "key"], name="store_item_place")]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="store_item_expiry"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}{self.key}"
