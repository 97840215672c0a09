from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

if TYPE_CHECKING:
    from django.contrib.auth.models import User

LIST = "/admin/subagents/managedsubagent/"

PageText = Callable[[str], str]


def page_of(key: str) -> str:
    return f"{LIST}{key}/change/"


@pytest.fixture
def admin_client(db: None) -> Client:
    """An administrator, who may do everything. Without a password: making one takes longer than a page."""
    return _logged_in(get_user_model().objects.create(username="admin", is_staff=True, is_superuser=True))


@pytest.fixture
def viewer(db: None) -> Client:
    """Staff who may look at subagents and nothing else."""
    return _staff("viewer", "view_managedsubagent")


@pytest.fixture
def prompt_reader(db: None) -> Client:
    """Staff who may look at subagents and read their prompts."""
    return _staff("prompt-reader", "view_managedsubagent", "view_prompt")


@pytest.fixture
def outsider(db: None) -> Client:
    """Staff without any permission."""
    return _staff("outsider")


@pytest.fixture
def text_of(admin_client: Client) -> PageText:
    """The unescaped text of a page as the administrator gets it."""

    def get(path: str) -> str:
        response = admin_client.get(path)
        assert response.status_code == 200, response
        return unescape(response.content.decode())

    return get


def _staff(name: str, *codenames: str) -> Client:
    user = get_user_model().objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return _logged_in(user)


def _logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client
