from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from deerflow_site import setup_link
from deerflow_site.models import SetupLink

GOOD = {"username": "ada", "password1": "correct horse 9 battery", "password2": "correct horse 9 battery"}

pytestmark = pytest.mark.django_db


def link(age: timedelta = timedelta()) -> str:
    token = setup_link.make_link(timezone.now() - age)
    assert token is not None
    return f"/setup/{token}/"


def test_the_link_makes_an_administrator_who_is_logged_in_at_once(client: Client):
    address = link()
    assert client.get(address).status_code == 200
    answer = client.post(address, GOOD)
    assert (answer.status_code, answer["Location"]) == (302, "/chat/")
    user = User.objects.get()
    assert (user.username, user.is_staff, user.is_superuser) == ("ada", True, True)
    assert client.session["_auth_user_id"] == str(user.pk)


def test_the_link_works_once(client: Client):
    address = link()
    client.post(address, GOOD)
    again = Client().post(address, {**GOOD, "username": "eve"})
    assert again.status_code == 410
    assert User.objects.count() == 1


def test_looking_at_the_page_or_a_refused_password_does_not_spend_the_link(client: Client):
    address = link()
    client.get(address)
    refused = client.post(address, {**GOOD, "password1": "123", "password2": "123"})
    assert refused.status_code == 200
    assert not User.objects.exists()
    assert client.post(address, GOOD).status_code == 302


def test_the_link_expires(client: Client):
    address = link(age=setup_link.VALID_FOR)
    assert client.get(address).status_code == 410
    assert client.post(address, GOOD).status_code == 410
    assert not User.objects.exists()


def test_a_newer_link_replaces_the_older_one(client: Client):
    older, newer = link(), link()
    assert client.get(older).status_code == 410
    assert client.get(newer).status_code == 200


def test_no_link_is_made_and_none_works_once_somebody_has_an_account(client: Client):
    address = link()
    User.objects.create_user("somebody")
    assert client.post(address, GOOD).status_code == 410
    assert setup_link.make_link(timezone.now()) is None


@pytest.mark.parametrize("token", ["guess", "a" * 5000, "%00", "%ED%A0%80", "汉字"])
def test_any_other_token_is_gone(client: Client, token: str):
    assert client.get(f"/setup/{token}/").status_code == 410


def test_the_token_itself_is_not_stored():
    address = link()
    assert address.split("/")[2] not in str(list(SetupLink.objects.values()))


def test_the_post_needs_a_csrf_token():
    assert Client(enforce_csrf_checks=True).post(link(), GOOD).status_code == 403
