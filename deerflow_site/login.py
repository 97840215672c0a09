"""Slows down whoever guesses passwords, wherever they ask: chat, admin and API all authenticate through here.

Counted per address and user name, so that a stranger cannot lock an administrator out from elsewhere, and per
address, so that one machine cannot try many names. Failures are rows, so every web process counts the same.
"""

from __future__ import annotations

import hashlib
import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.core.exceptions import PermissionDenied, ValidationError
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import ngettext

from deerflow_site.models import FailedLogin

if TYPE_CHECKING:
    from django.http import HttpRequest

WINDOW = timedelta(minutes=15)
FAILURES_PER_NAME = 5
FAILURES_PER_ADDRESS = 30


def blocked_until(request: HttpRequest | None, username: str, now: datetime) -> datetime | None:
    """When this caller may try again; None: now."""
    times = []
    for key, limit in _keys(request, username).items():
        recent = FailedLogin.objects.filter(key=key, at__gt=now - WINDOW).order_by("-at")
        # The limit's oldest failure has to leave the window.
        deciding = recent.values_list("at", flat=True)[limit - 1 : limit].first()
        if deciding is not None:
            times.append(deciding + WINDOW)
    return max(times, default=None)


class ThrottleBackend:
    """Comes first: refuses before any password is checked. It knows no users, so it has no `get_user`."""

    def authenticate(self, request: HttpRequest | None, username: str | None = None, **_credentials: Any) -> None:
        if username is not None and blocked_until(request, username, timezone.now()):
            raise PermissionDenied


class LoginForm(AuthenticationForm):
    """Django's login form, which also says when to come back."""

    def get_invalid_login_error(self) -> ValidationError:
        until = blocked_until(self.request, self.data.get("username", ""), timezone.now())
        if until is None:
            return super().get_invalid_login_error()
        minutes = max(1, math.ceil((until - timezone.now()).total_seconds() / 60))
        sentence = ngettext(
            "Too many failed attempts. Try again in %(minutes)d minute.",
            "Too many failed attempts. Try again in %(minutes)d minutes.",
            minutes,
        )
        return ValidationError(sentence % {"minutes": minutes}, code="throttled")


@receiver(user_login_failed, dispatch_uid="count_failed_login")
def _count(credentials: dict[str, Any], request: HttpRequest | None = None, **_kwargs: Any) -> None:
    username = credentials.get("username")
    now = timezone.now()
    # Attempts while blocked do not count: a person who waits must not be pushed back by a page that retries.
    if not isinstance(username, str) or blocked_until(request, username, now):
        return
    FailedLogin.objects.filter(at__lte=now - WINDOW).delete()
    FailedLogin.objects.bulk_create(FailedLogin(key=key, at=now) for key in _keys(request, username))


@receiver(user_logged_in, dispatch_uid="forget_failed_logins")
def _forget(request: HttpRequest | None, user: Any, **_kwargs: Any) -> None:
    name_key = next(iter(_keys(request, user.get_username())))
    FailedLogin.objects.filter(key=name_key).delete()


def _keys(request: HttpRequest | None, username: str) -> dict[str, int]:
    """What is counted, with its limit; the user name's key comes first."""
    # uvicorn has already put the caller's address here when a trusted proxy stands in front.
    address = request.META.get("REMOTE_ADDR") or "" if request is not None else ""
    name = username.strip().casefold()
    return {
        _digest(f"name\0{address}\0{name}"): FAILURES_PER_NAME,
        _digest(f"address\0{address}"): FAILURES_PER_ADDRESS,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
