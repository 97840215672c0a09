"""Rows written by statements of our own hold what Django's query builder would have written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs import rows
from runs.models import Run, Thread
from tests.runs.factories import RunFactory, ThreadFactory

pytestmark = pytest.mark.django_db

AWKWARD: list[Any] = [
    {},
    {"text": "„quotes“ \"'\\ \n\t {braces} %s %% 中文 🦌"},
    {"number": 2**70, "fraction": 0.1, "yes": True, "nothing": None},
    {"deep": {"list": [1, [2, {"three": "3"}]]}},
]


@pytest.mark.parametrize("value", AWKWARD)
def test_inserted_rows_come_back_as_they_were(value):
    thread = ThreadFactory()
    words = value.get("text", "plain")
    run = RunFactory.build(
        thread=thread,
        metadata=value,
        definition={"agent": words},
        error=words,
        usage_estimated=True,
        input_tokens=2**40,
        started_at=timezone.now(),
    )
    rows.add(Run, [run])
    found = Run.objects.get(pk=run.pk)
    for field in Run._meta.concrete_fields:
        assert getattr(found, field.attname) == getattr(run, field.attname), field.name


@pytest.mark.parametrize("value", AWKWARD)
def test_changed_rows_hold_the_new_values_where_the_guard_still_holds(value):
    first, second = RunFactory(thread=ThreadFactory()), RunFactory(thread=ThreadFactory())
    at = timezone.now() + timedelta(microseconds=7)
    for run in (first, second):
        run.status, run.metadata, run.ended_at, run.queue_id = "error", value, at, None
    with rows.in_one_go() as matched:
        rows.change(
            Run,
            [first, second],
            ("status", "metadata", "ended_at", "queue_id"),
            guard_fields=("status", "fence"),
            guards=[("pending", first.fence), ("running", second.fence)],
            matched=matched,
        )
    assert matched.total() == 1
    found = Run.objects.get(pk=first.pk)
    assert (found.status, found.metadata, found.ended_at, found.queue_id) == ("error", value, at, None)
    assert Run.objects.get(pk=second.pk).status == "pending"


def test_many_rows_of_one_statement_each_get_their_own_values():
    threads = [ThreadFactory() for _ in range(5)]
    for number, thread in enumerate(threads):
        thread.title, thread.last_seq = f"thread {number}", number
    rows.change(Thread, threads, ("title", "last_seq"))
    found = Thread.objects.in_bulk([thread.pk for thread in threads])
    assert [(found[t.pk].title, found[t.pk].last_seq) for t in threads] == [(f"thread {n}", n) for n in range(5)]
