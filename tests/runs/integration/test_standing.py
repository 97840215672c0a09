"""Why a run waits or works, and its place in line: the order in which workers really serve."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone, translation

from runs import services
from runs.lifecycle import commit_one
from runs.models import Run, WorkerHeartbeat, new_id
from runs.standing import Reason, Standing, explain_now, standings
from runs.statuses import RunStatus, WaitingFor
from tests.runs.acts import claim, claimed, finish, lose_lease, start_child
from tests.runs.factories import PersonFactory, ThreadFactory

pytestmark = pytest.mark.django_db


def worker(*, running: int, slots: int = 2, waiting: int = 0, silent_seconds: float = 0) -> None:
    now = timezone.now()
    WorkerHeartbeat.objects.create(
        name=f"w{new_id()}",
        slots=slots,
        running=running,
        waiting=waiting,
        started_at=now,
        seen_at=now - timedelta(seconds=silent_seconds),
    )


def begin(owner=None) -> Run:
    return services.start_run(thread=ThreadFactory(owner=owner or PersonFactory()), text="hello")


def test_the_places_are_those_in_which_runs_are_served():
    lead = begin()
    held = claimed(lead)
    ada, bob = PersonFactory(), PersonFactory()
    runs = [begin(ada), begin(ada), begin(ada), begin(bob), start_child(held)]
    places = {run_id: standing.place for run_id, standing in standings([run.pk for run in runs]).items()}
    served = [one.run.pk for _ in runs for one in claim(free=1).runs]
    assert [run_id for run_id, _place in sorted(places.items(), key=lambda item: item[1])] == served
    assert places[runs[-1].pk] == 1  # a child before every lead
    assert places[runs[3].pk] == 3  # the second person does not wait for all of the first one's


@pytest.mark.parametrize(
    ("workers", "reason"),
    [
        ([], Reason.NO_WORKER),
        ([{"running": 2, "silent_seconds": 3600}], Reason.NO_WORKER),
        ([{"running": 2}], Reason.BUSY),
        ([{"running": 2}, {"running": 1}], Reason.SOON),
        ([{"running": 2, "waiting": 1}], Reason.SOON),  # a lead that waits for its children holds no slot
    ],
)
def test_the_reason_comes_from_what_the_workers_say(workers, reason):
    for one in workers:
        worker(**one)
    run = begin()
    assert standings([run.pk])[run.pk] == Standing(reason, 1)


def test_a_message_behind_a_running_answer_has_no_place(thread):
    claimed(services.start_run(thread=thread, text="first"))
    waiting = services.start_run(thread=thread, text="next")
    assert standings([waiting.pk])[waiting.pk] == Standing(Reason.BEHIND)


def test_a_run_that_is_due_later_says_when_and_is_in_nobodys_way():
    thread = ThreadFactory()
    verb = services.start_verb(thread_id=thread.pk, owner_id=thread.owner_id, messages=[services.user_message("x")])
    later = commit_one(replace(verb, delay_seconds=3600))
    after = begin()
    found = standings([later.pk, after.pk])
    assert found[later.pk] == Standing(Reason.LATER, due_at=Run.objects.get(pk=later.pk).due_at)
    assert found[after.pk].place == 1


def test_runs_that_have_begun_or_do_not_exist_have_no_standing():
    run = begin()
    claimed(run)
    assert standings([run.pk, new_id()]) == {}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_its_sentence(reason, language):
    with translation.override(language):
        placed = reason not in {Reason.BEHIND, Reason.LATER}
        due_at = datetime(2027, 3, 4, 5, 6, tzinfo=UTC) if reason == Reason.LATER else None
        sentence = Standing(reason, 1234 if placed else None, due_at).sentence()
    assert "%" not in sentence
    assert ("1,234" in sentence) == placed
    assert ("2027" in sentence) == (reason == Reason.LATER)
    assert any("\u4e00" <= character <= "\u9fff" for character in sentence) == (language == "zh-hans")


def at_work(**fields) -> Run:
    run = begin()
    claimed(run)
    Run.objects.filter(pk=run.pk).update(**fields)
    return Run.objects.get(pk=run.pk)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("waiting_for", list(WaitingFor))
def test_a_run_under_way_says_what_it_is_at_and_what_can_be_done(waiting_for, language):
    run = at_work(waiting_for=waiting_for.value)
    with translation.override(language):
        explanation = explain_now(run)
    assert explanation.what and explanation.way_out
    assert any("\u4e00" <= c <= "\u9fff" for c in explanation.what) == (language == "zh-hans")


@pytest.mark.parametrize(
    ("waiting_for", "words", "layer"),
    [
        (WaitingFor.MODEL, "the model gpt takes no more calls at the same time", "models.max_concurrency"),
        (WaitingFor.RETRY, "the model gpt failed and is made again", "models.max_retries"),
    ],
)
def test_a_run_that_waits_for_its_model_says_why_and_which_setting_decides(waiting_for, words, layer):
    explanation = explain_now(at_work(waiting_for=waiting_for.value, model="gpt"))
    assert words in explanation.what
    assert explanation.layer == layer


def test_a_run_whose_worker_is_silent_says_so():
    run = at_work()
    lose_lease(run)
    assert "has not been heard of" in explain_now(Run.objects.get(pk=run.pk)).what


def test_a_run_that_is_being_stopped_says_so():
    run = at_work(cancel_requested="cancelled")
    assert "being stopped" in explain_now(run).what


@pytest.mark.parametrize("status", list(RunStatus))
def test_every_status_is_explained(status):
    run = begin()
    Run.objects.filter(pk=run.pk).update(status=status.value)
    explanation = explain_now(Run.objects.get(pk=run.pk))
    assert explanation.what.endswith(".")


def test_a_finished_run_is_finished():
    run = begin()
    finish(claimed(run))
    assert explain_now(Run.objects.get(pk=run.pk)).sentence == "It is finished."
