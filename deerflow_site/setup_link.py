"""The one-time link with which the first administrator of an empty installation chooses name and password."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import transaction

from deerflow_site.locks import deployment_lock
from deerflow_site.models import SetupLink

if TYPE_CHECKING:
    from django.contrib.auth.forms import BaseUserCreationForm
    from django.contrib.auth.models import User

VALID_FOR = timedelta(hours=1)


class LinkSpent(Exception):
    """The link was used, has expired, was replaced by a newer one, or somebody has an account already."""


def make_link(now: datetime) -> str | None:
    """A fresh token, which makes every earlier one invalid; None when somebody has an account already.

    The token carries 256 random bits: whoever holds it was given it, so it needs no signature.
    """
    if get_user_model().objects.exists():
        return None
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        SetupLink.objects.all().delete()
        SetupLink.objects.create(digest=_digest(token), expires_at=now + VALID_FOR)
    return token


def is_open(token: str, now: datetime) -> bool:
    """Whether the token may still be used. Looking does not use it up."""
    return _live(token, now).exists() and not get_user_model().objects.exists()


def use(token: str, form: BaseUserCreationForm[User], now: datetime) -> User:
    """Create the administrator a valid `form` describes, and spend the link: both or neither.

    Raises LinkSpent when the token may not be used (any more).
    """
    # The lock keeps two people with two links, or one impatient person, from becoming two first administrators.
    with deployment_lock("setup"), transaction.atomic():
        spent, _ = _live(token, now).delete()
        if not spent or get_user_model().objects.exists():
            raise LinkSpent
        user = form.save(commit=False)
        user.is_staff = user.is_superuser = True
        user.save()
    return user


def prune(now: datetime, dry_run: bool) -> dict[str, int]:
    """Housekeeping: remove links that have expired."""
    expired = SetupLink.objects.filter(expires_at__lte=now)
    return {"setup_links": expired.count() if dry_run else expired.delete()[0]}


def _live(token: str, now: datetime):  # type: ignore[no-untyped-def]
    return SetupLink.objects.filter(digest=_digest(token), expires_at__gt=now)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
