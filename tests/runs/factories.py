"""Rows for tests: each factory needs only what matters to the test that calls it."""

from __future__ import annotations

from typing import Any

import factory
from django.contrib.auth import get_user_model
from django.utils import timezone

from runs import services
from runs.models import Run, Thread, new_id


class PersonFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = get_user_model()

    username = factory.Sequence(lambda number: f"person-{number}-{new_id().hex[-6:]}")
    password = "!"  # cannot sign in: hashing a real one takes longer than most tests


class ThreadFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Thread

    owner = factory.SubFactory(PersonFactory)
    created_at = updated_at = factory.LazyFunction(timezone.now)


class RunFactory(factory.django.DjangoModelFactory):
    """A bare row, past the lifecycle: for states that only a lost machine leaves behind."""

    class Meta:
        model = Run

    thread = factory.SubFactory(ThreadFactory)
    agent = "lead_agent"
    root_id = factory.SelfAttribute("id")
    id = factory.LazyFunction(new_id)
    created_at = factory.LazyFunction(timezone.now)


def started(thread: Thread | None = None, text: str = "Compare three apps", **options: Any) -> Run:
    """A run as the edges start one."""
    return services.start_run(thread=thread or ThreadFactory(), text=text, **options)
