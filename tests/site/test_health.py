from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from runs.models import WorkerHeartbeat

if TYPE_CHECKING:
    from django.test import AsyncClient, Client


def worker_seen(ago: timedelta) -> None:
    now = timezone.now()
    WorkerHeartbeat.objects.create(name="here:1", slots=100, started_at=now - ago, seen_at=now - ago)


def test_healthz_answers_without_database_session_or_known_host(client: Client):
    answer = client.get("/healthz", headers={"host": "any.name.at.all"})
    assert (answer.status_code, answer.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_readyz_is_ready_with_database_migrations_and_a_worker_seen_lately(client: Client):
    worker_seen(timedelta(seconds=1))
    answer = client.get("/readyz", headers={"host": "any.name.at.all"})
    assert answer.status_code == 200
    assert answer.json() == {
        "ready": True,
        "database": {"ok": True, "reason": ""},
        "migrations": {"ok": True, "reason": ""},
        "workers": {"ok": True, "reason": ""},
    }


@pytest.mark.django_db
def test_readyz_says_that_no_worker_was_seen_within_two_leases(client: Client):
    worker_seen(timedelta(seconds=2 * settings.LEASE_SECONDS + 1))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["workers"]["reason"] == f"no worker was seen in the last {2 * settings.LEASE_SECONDS} seconds"


@pytest.mark.django_db
def test_readyz_says_that_migrations_are_missing(client: Client):
    worker_seen(timedelta())
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'deerflow_site' AND name LIKE '0003%'")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["migrations"]["reason"] == "1 migrations are not applied"


@pytest.mark.django_db(transaction=True)
async def test_probes_answer_under_asgi_too(async_client: AsyncClient):
    assert (await async_client.get("/healthz")).status_code == 200
    assert (await async_client.get("/readyz")).status_code == 503
