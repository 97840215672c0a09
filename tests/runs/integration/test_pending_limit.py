"""One person's waiting runs are bounded; the refusal names the setting and the limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runs import services
from runs.errors import TooManyPending
from runs.lifecycle import commit
from runs.models import Run
from subagents import registry
from tests.runs.acts import claim, claimed, start_child
from tests.runs.factories import PersonFactory, ThreadFactory

pytestmark = pytest.mark.django_db


def start(owner, most: int = 3):
    thread = ThreadFactory(owner=owner)
    verb = services.start_verb(
        thread_id=thread.pk, owner_id=owner.pk, messages=[services.user_message("hello")], agent="lead_agent"
    )
    return replace(verb, most_pending=most)


def test_the_one_too_many_is_refused_and_leaves_nothing_behind():
    owner = PersonFactory()
    commit([start(owner) for _ in range(3)])
    (refused,) = commit([start(owner)])
    assert isinstance(refused, TooManyPending)
    assert (refused.limit, refused.field) == (3, "runs.max_pending_per_owner")
    assert Run.objects.count() == 3


def test_those_of_one_commit_count_for_each_other():
    owner = PersonFactory()
    outcomes = commit([start(owner) for _ in range(5)])
    assert [isinstance(outcome, TooManyPending) for outcome in outcomes] == [False, False, False, True, True]


def test_what_has_begun_does_not_count():
    owner = PersonFactory()
    commit([start(owner) for _ in range(3)])
    claim(free=1)
    assert not isinstance(commit([start(owner)])[0], Exception)


def test_other_peoples_runs_and_subagents_do_not_count():
    owner = PersonFactory()
    commit([start(PersonFactory()) for _ in range(3)])
    lead = services.start_run(thread=ThreadFactory(owner=owner), text="hello")
    held = claimed(lead)
    for number in range(3):
        start_child(held, f"call-{number}")
    assert not isinstance(commit([start(owner)])[0], Exception)


def test_messages_that_wait_behind_a_run_count():
    owner = PersonFactory()
    thread = ThreadFactory(owner=owner)
    claimed(services.start_run(thread=thread, text="first"))
    for _ in range(3):
        services.start_run(thread=thread, text="next")
    assert isinstance(commit([start(owner)])[0], TooManyPending)


def test_the_configured_limit_holds_for_every_start(settings, tmp_path):
    settings.CONFIG_FILE = tmp_path / "config.yaml"
    settings.CONFIG_FILE.write_text("runs: {max_pending_per_owner: 2}\n")
    registry.forget()
    owner = PersonFactory()
    for _ in range(2):
        services.start_run(thread=ThreadFactory(owner=owner), text="hello")
    with pytest.raises(TooManyPending):
        services.start_run(thread=ThreadFactory(owner=owner), text="hello")
    registry.forget()
