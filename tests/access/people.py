"""People with exactly the permissions a test names."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_numbers = itertools.count(1)


def person(*codenames: str, name: str = "", **fields: Any) -> User:
    """A user with these permissions. Without a password: making one takes longer than a request."""
    user = get_user_model().objects.create_user(name or f"person-{next(_numbers)}", **fields)
    found = Permission.objects.filter(codename__in=codenames)
    assert {permission.codename for permission in found} == set(codenames)
    user.user_permissions.set(found)
    return user


def logged_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client
