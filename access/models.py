"""Rows of access: keys for programs, what callers have used of their allowance, answers that are kept for repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from datetime import datetime


class ApiKey(models.Model):
    """A key for programs. Only its SHA-256 is kept: the key itself is shown once, when it is made."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=80)
    prefix = models.CharField(_("prefix"), max_length=16)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.JSONField(_("scopes"), default=list)  # of: read, run, admin
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)  # to the minute

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        permissions = [("all_keys", _("Can see and revoke everybody's API keys"))]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def state(self, now: datetime) -> str:
        """`valid`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


class Allowance(models.Model):
    """How many requests a caller has taken, over all processes, in the window that starts at `window`."""

    key = models.CharField(max_length=64, primary_key=True)  # SHA-256 of the throttle's name and the caller
    window = models.BigIntegerField(db_index=True)  # seconds since 1970
    taken = models.PositiveIntegerField()

    class Meta:
        verbose_name = _("allowance")
        verbose_name_plural = _("allowances")

    def __str__(self) -> str:
        return f"{self.key[:8]}… {self.taken}"


class KeptAnswer(models.Model):
    """What a request with an `Idempotency-Key` was answered, written in the transaction of what it did."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)  # SHA-256 of the key
    request = models.CharField(max_length=64)  # SHA-256 of method, address and body
    status = models.PositiveSmallIntegerField(default=0)
    body = models.TextField(blank=True)  # JSON
    location = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        verbose_name = _("kept answer")
        verbose_name_plural = _("kept answers")
        constraints = [models.UniqueConstraint(fields=["owner", "digest"], name="kept_answer_once_per_key")]

    def __str__(self) -> str:
        return f"{self.digest[:8]}… {self.status}"
