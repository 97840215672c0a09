"""Rows that belong to the site itself: the way in for the first administrator, and failed logins."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class SetupLink(models.Model):
    """A one-time way in, valid while nobody has an account. Only the token's SHA-256 is kept."""

    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name = _("set-up link")
        verbose_name_plural = _("set-up links")

    def __str__(self) -> str:
        return f"{self.digest[:8]}…"


class FailedLogin(models.Model):
    """One failed attempt. `key` is the SHA-256 of what is counted: an address, or an address and a user name."""

    key = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("failed login")
        verbose_name_plural = _("failed logins")
        indexes = [models.Index(fields=["key", "at"], name="failed_login_key_at")]

    def __str__(self) -> str:
        return f"{self.key[:8]}… {self.at:%Y-%m-%d %H:%M:%S}"
