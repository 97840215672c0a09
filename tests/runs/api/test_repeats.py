"""`Idempotency-Key`: what starts work is done once, however often it is sent."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connections
from django.utils import timezone

from access.models import KeptAnswer
from runs.housekeeping import housekeep
from runs.models import Run, Thread
from tests.access.calling import caller, is_problem
from tests.runs.api.conftest import capped
from tests.runs.factories import ThreadFactory

if TYPE_CHECKING:
    from tests.access.calling import Api

TEXT = {"text": "Compare three apps"}
db = pytest.mark.django_db


def ask(api: Api, thread: Thread, key: str, body: object = TEXT) -> Any:
    return api("POST", f"/threads/{thread.pk}/runs", body, idempotency_key=key)


@db
def test_the_same_request_with_the_same_key_gets_the_same_answer_and_starts_nothing(api: Api, thread: Thread):
    first, again = ask(api, thread, "order 4711"), ask(api, thread, "order 4711")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert first["location"] == again["location"]
    assert (first.headers.get("idempotent-replayed"), again["idempotent-replayed"]) == (None, "true")
    assert Run.objects.count() == 1
    assert ask(api, thread, "order 4712").json()["id"] != first.json()["id"]


@db
def test_everything_that_starts_work_takes_a_key(api: Api, run: Run):
    def twice(path: str, body: object) -> None:
        answers = [api("POST", path, body, idempotency_key=path) for _ in range(2)]
        assert answers[0].status_code in {201, 202}
        assert answers[0].json() == answers[1].json()

    twice("/threads", {"title": "x"})
    assert Thread.objects.count() == 2
    twice(f"/runs/{run.pk}/steer", {"text": "Prices too."})
    assert len(Run.objects.get().steers) == 1
    capped(run)
    twice(f"/runs/{run.pk}/continue", {})
    assert Run.objects.filter(continues=run).count() == 1


@db
def test_a_key_that_came_with_another_request_is_refused(api: Api, thread: Thread):
    ask(api, thread, "k")
    for answer in (ask(api, thread, "k", {"text": "else"}), ask(api, ThreadFactory(owner=api.user), "k")):
        is_problem(answer, 422, "idempotency_key_reused")
    assert Run.objects.count() == 1


@db
@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel".encode().decode("latin-1"), "a\tb"])
def test_what_is_no_key_is_refused(api: Api, thread: Thread, key: str):
    is_problem(ask(api, thread, key), 400, "bad_request")
    assert not Run.objects.exists()


@db
def test_another_persons_key_is_another_key(api: Api, thread: Thread):
    other = caller(scopes=("run",))
    assert ask(api, thread, "k").status_code == 202
    is_problem(ask(other, thread, "k"), 404, "not_found")
    assert ask(other, ThreadFactory(owner=other.user), "k").status_code == 202
    assert Run.objects.count() == 2


@db
def test_what_went_wrong_is_not_remembered(api: Api, thread: Thread):
    is_problem(ask(api, thread, "k", {}), 422, "invalid")
    assert ask(api, thread, "k").status_code == 202


@db
def test_answers_are_kept_for_a_day(api: Api, thread: Thread):
    ask(api, thread, "k")
    assert housekeep(dry_run=True, now=timezone.now() + timedelta(hours=25))["kept_answers"] == 1
    housekeep(now=timezone.now() + timedelta(hours=23))
    assert KeptAnswer.objects.count() == 1
    assert housekeep(now=timezone.now() + timedelta(hours=25))["kept_answers"] == 1
    assert not KeptAnswer.objects.exists()


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_of_requests_with_one_key_at_the_same_moment_one_starts_something(api: Api, thread: Thread):
    gate = threading.Barrier(4)
    answers: list[Any] = []

    def work() -> None:
        gate.wait(60)
        try:
            answers.append(ask(api, thread, "k"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert [answer.status_code for answer in answers] == [202] * 4, [answer.content for answer in answers]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert Run.objects.count() == 1
