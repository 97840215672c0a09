from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from deerflow_site import login
from deerflow_site.models import FailedLogin

if TYPE_CHECKING:
    from django.conf import LazySettings

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 9 battery"


@pytest.fixture(autouse=True)
def ada(settings: LazySettings) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # dozens of attempts in no time
    return User.objects.create_superuser("ada", password=PASSWORD)


def attempt(password: str, *, name: str = "ada", address: str = "192.0.2.1", page: str = "/login/"):
    return Client(REMOTE_ADDR=address).post(page, {"username": name, "password": password})


def fail(times: int, **where: str) -> None:
    for _ in range(times):
        assert attempt("wrong", **where).status_code == 200


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_after_five_failures_even_the_right_password_waits_and_the_page_says_how_long(page: str):
    fail(login.FAILURES_PER_NAME, page=page)
    answer = attempt(PASSWORD, page=page)
    assert answer.status_code == 200
    assert "Try again in 15 minutes" in answer.content.decode()


def test_the_name_is_counted_in_any_spelling():
    fail(login.FAILURES_PER_NAME, name=" ADA ")
    assert "Try again" in attempt(PASSWORD).content.decode()


def test_a_stranger_elsewhere_does_not_lock_the_owner_of_the_name_out():
    fail(login.FAILURES_PER_NAME, address="198.51.100.7")
    assert attempt(PASSWORD).status_code == 302


def test_one_address_cannot_try_many_names():
    for number in range(login.FAILURES_PER_ADDRESS):
        attempt("wrong", name=f"name{number}")
    assert "Try again" in attempt(PASSWORD).content.decode()
    assert attempt(PASSWORD, address="192.0.2.2").status_code == 302


def test_the_block_ends_when_its_failures_have_left_the_window():
    fail(login.FAILURES_PER_NAME)
    FailedLogin.objects.update(at=timezone.now() - login.WINDOW - timedelta(seconds=1))
    assert attempt(PASSWORD).status_code == 302


def test_attempts_while_blocked_do_not_prolong_the_block():
    fail(login.FAILURES_PER_NAME)
    before = FailedLogin.objects.count()
    fail(3)
    assert FailedLogin.objects.count() == before


def test_a_successful_login_forgets_the_failures_before_it():
    fail(login.FAILURES_PER_NAME - 1)
    assert attempt(PASSWORD).status_code == 302
    fail(login.FAILURES_PER_NAME - 1)
    assert attempt(PASSWORD).status_code == 302


def test_odd_names_are_counted_like_others():
    for name in ("x" * 10_000, "汉字", "\u202e", "a\x00b"):
        fail(1, name=name)


def test_no_user_name_or_address_is_stored():
    fail(1)
    stored = str(list(FailedLogin.objects.values()))
    assert "ada" not in stored
    assert "192.0.2.1" not in stored
