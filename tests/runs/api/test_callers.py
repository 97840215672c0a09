"""Who may see and do what: a conversation is its owner's, a run's facts are for whoever may see all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from runs.models import Run
from tests.access.calling import BASE, caller, is_problem
from tests.runs.acts import claimed
from tests.runs.factories import ThreadFactory

if TYPE_CHECKING:
    from runs.models import Thread
    from tests.access.calling import Api

pytestmark = pytest.mark.django_db
READS = ["/threads/{thread}", "/threads/{thread}/events", "/runs/{run}"]
WORK = ["/threads/{thread}/runs", "/runs/{run}/cancel", "/runs/{run}/steer", "/runs/{run}/continue"]
BODIES = {"runs": {"text": "hello"}, "steer": {"text": "hello"}}


def address(template: str, run: Run) -> str:
    return template.format(thread=run.thread_id, run=run.pk)


def post(api: Api, template: str, run: Run) -> Any:
    return api("POST", address(template, run), BODIES.get(template.rpartition("/")[2], {}))


@pytest.mark.parametrize("template", ["/threads", "/runs", *READS])
def test_without_a_key_nothing_is_said(template: str, run: Run):
    is_problem(Client(raise_request_exception=False).get(BASE + address(template, run)), 401, "not_authenticated")


@pytest.mark.parametrize("template", WORK)
def test_a_key_that_only_reads_starts_and_stops_nothing(template: str, run: Run):
    is_problem(post(caller(scopes=("read",)), template, run), 403, "scope_missing")
    assert Run.objects.get().cancel_requested == ""


@pytest.mark.parametrize("template", READS)
def test_what_is_somebody_elses_is_not_found(template: str, run: Run, api: Api):
    assert api.get(address(template, run)).status_code == 200
    is_problem(caller(scopes=("run",)).get(address(template, run)), 404, "not_found")


@pytest.mark.parametrize("template", WORK)
def test_nothing_can_be_done_to_what_is_somebody_elses(template: str, run: Run):
    is_problem(post(caller(scopes=("run",)), template, run), 404, "not_found")
    assert Run.objects.count() == 1
    assert Run.objects.get().status == "pending"


def test_lists_show_ones_own(run: Run, api: Api):
    stranger = caller()
    assert [one["id"] for one in api.ok("/runs")["results"]] == [str(run.pk)]
    assert [one["id"] for one in api.ok("/threads")["results"]] == [str(run.thread_id)]
    assert stranger.ok("/runs")["results"] == stranger.ok("/threads")["results"] == []


def test_whoever_may_see_all_runs_sees_their_facts_and_no_conversation(run: Run, api: Api):
    viewer = caller("view_run", scopes=("run",))
    assert viewer.ok(f"/runs/{run.pk}")["owner"] == api.user.get_username()
    assert [one["id"] for one in viewer.ok(f"/runs?owner={api.user.get_username()}")["results"]] == [str(run.pk)]
    assert viewer.ok("/threads")["results"] == []
    is_problem(viewer.get(f"/threads/{run.thread_id}/events"), 404, "not_found")
    for template in WORK[1:]:
        problem = is_problem(post(viewer, template, run), 403, "forbidden")
        assert "owner" in problem["detail"] or "runs.change_run" in problem["detail"]


def test_an_operator_stops_anybodys_run_and_puts_no_words_into_it(run: Run):
    claimed(run)
    operator = caller("view_run", "change_run", scopes=("run",))
    is_problem(post(operator, "/runs/{run}/steer", run), 403, "forbidden")
    assert post(operator, "/runs/{run}/cancel", run).status_code == 202
    run.refresh_from_db()
    assert (run.cancel_requested, run.cancelled_by) == ("cancelled", operator.user.get_username())


def test_what_nobody_has_is_not_found_either(api: Api, thread: Thread):
    other = ThreadFactory()
    for path in (f"/threads/{other.pk}", "/threads/x", f"/runs/{other.pk}", "/runs/1"):
        is_problem(api.get(path), 404, "not_found")
