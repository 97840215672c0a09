"""Runs over HTTP: lists, why, cancel, steer, continue."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from runs.event_types import EventType
from runs.lifecycle import ReadSteers, commit_one
from runs.models import Run
from subagents import registry
from tests.access.calling import caller, is_problem
from tests.runs.acts import claimed, finish, start_child
from tests.runs.api.conftest import capped
from tests.runs.factories import RunFactory, ThreadFactory, started

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from runs.models import Thread
    from tests.access.calling import Api

pytestmark = pytest.mark.django_db


def ids(api: Api, path: str) -> list[str]:
    return [one["id"] for one in api.ok(path)["results"]]


# --- lists --------------------------------------------------------------------------------------------------------
def test_pages_show_each_run_once_newest_first_while_new_ones_come(api: Api):
    runs = [str(RunFactory(thread=ThreadFactory(owner=api.user)).pk) for _ in range(7)]
    seen, path = [], "/runs?page_size=3"
    while path:
        page = api.ok(path)
        seen += [one["id"] for one in page["results"]]
        path = (page["next"] or "").removeprefix("/api/v1")
        RunFactory(thread=ThreadFactory(owner=api.user))
    assert seen == runs[::-1]
    assert page["previous"].startswith("/api/v1/runs?")


@pytest.mark.parametrize("cursor", ["x", "cD0x", "cD1ub3RhdXVpZA==", "%00"])
@pytest.mark.parametrize("path", ["/runs", "/threads"])
def test_a_cursor_nobody_gave_out_is_refused_by_name(api: Api, path: str, cursor: str):
    problem = is_problem(api.get(f"{path}?cursor={cursor}"), 422, "invalid")
    assert [error["pointer"] for error in problem["errors"]] == ["?cursor"]


def test_filters_narrow_the_list_and_a_mistyped_one_is_refused(api: Api, run: Run):
    held = claimed(run)
    child = start_child(held)
    ended = capped(started(ThreadFactory(owner=api.user)))
    both = [str(child.pk), str(run.pk)]
    assert ids(api, "/runs?active=true") == both
    assert ids(api, f"/runs?root={run.pk}") == both
    assert ids(api, "/runs?kind=task") == ids(api, f"/runs?parent={run.pk}") == [str(child.pk)]
    assert ids(api, "/runs?status=success") == ids(api, "/runs?stop_reason=turn_capped") == [str(ended.pk)]
    assert ids(api, f"/runs?thread={run.thread_id}") == ids(api, "/runs?kind=lead&active=true") == [str(run.pk)]
    assert ids(api, f"/runs?agent={child.agent}") == [str(child.pk)]
    later = (timezone.now() + timedelta(hours=1)).isoformat().replace("+", "%2B")
    assert ids(api, f"/runs?created_after={later}") == []
    assert len(ids(api, f"/runs?created_before={later}")) == 3
    for wrong in ("status=done", "thread=1", "active=perhaps", "created_after=now", "stauts=success"):
        problem = is_problem(api.get(f"/runs?{wrong}"), 422, "invalid")
        assert problem["errors"][0]["pointer"] == f"?{wrong.partition('=')[0]}"


# --- why ----------------------------------------------------------------------------------------------------------
def test_a_run_says_why_it_is_as_it_is_and_what_can_be_done(api: Api, run: Run):
    waiting = api.ok(f"/runs/{run.pk}")
    assert waiting["why"]["what"].startswith("No worker is running.")
    assert (waiting["status"], waiting["actions"]) == ("pending", ["cancel", "steer"])
    assert api.ok("/runs")["results"][0]["why"] is None
    capped(run)
    shown = api.ok(f"/runs/{run.pk}")
    assert shown["why"] == {
        "what": "Stopped by the turn limit: it used all 10 model calls (runs.max_turns), so the answer is what it had"
        " by then.",
        "way_out": "Continue with a higher limit, or ask for less at once.",
        "limit": "10 model calls",
        "layer": "runs.max_turns",
    }
    assert (shown["stop_reason"], shown["actions"], shown["continue_with"]) == (
        "turn_capped",
        ["continue"],
        {"max_turns": 20},
    )
    assert api.ok("/runs")["results"][0]["why"] == shown["why"]


def test_why_is_said_in_the_callers_language(api: Api, run: Run):
    capped(run)
    said = api.get(f"/runs/{run.pk}", accept_language="zh-hans").json()["why"]["what"]
    assert "runs.max_turns" in said
    assert not said.startswith("Stopped")


def test_a_run_that_is_finished_offers_nothing_and_unknown_usage_is_not_zero(api: Api, run: Run):
    finish(claimed(run), answer="Done.")
    shown = api.ok(f"/runs/{run.pk}")
    assert (shown["status"], shown["actions"], shown["usage"], shown["continue_with"]) == ("success", [], None, {})


# --- cancel -------------------------------------------------------------------------------------------------------
def test_cancelling_says_what_was_told_to_stop_and_the_second_time_that_it_had_ended(api: Api, run: Run):
    child = start_child(claimed(run))
    first = api("POST", f"/runs/{run.pk}/cancel")
    assert first.status_code == 202
    assert [(one["run_id"], one["kind"]) for one in first.json()["stopped"]] == [
        (str(run.pk), "answer"),
        (str(child.pk), "task"),
    ]
    ended = capped(started(ThreadFactory(owner=api.user)))
    assert api("POST", f"/runs/{ended.pk}/cancel").json() == {"already_ended": True, "stopped": []}


def test_one_task_can_be_stopped_without_the_rest(api: Api, run: Run):
    held = claimed(run)
    child, sibling = start_child(held, "call-1"), start_child(held, "call-2")
    api("POST", f"/runs/{child.pk}/cancel")
    statuses = dict(Run.objects.values_list("pk", "status"))
    assert (statuses[child.pk], statuses[sibling.pk], statuses[run.pk]) == ("cancelled", "pending", "running")


# --- steer --------------------------------------------------------------------------------------------------------
def test_a_message_for_a_run_waits_until_it_is_picked_up_which_is_an_event(api: Api, run: Run):
    held = claimed(run)
    answer = api("POST", f"/runs/{run.pk}/steer", {"text": "Prices too."})
    assert answer.status_code == 202
    message_id = answer.json()["message_id"]
    assert api.ok(f"/runs/{run.pk}")["unread_messages"] == 1
    commit_one(ReadSteers(held=held, turn=3))
    assert api.ok(f"/runs/{run.pk}")["unread_messages"] == 0
    events = api.ok(f"/threads/{run.thread_id}/events")["events"]
    (receipt,) = [event["data"] for event in events if event["type"] == EventType.RUN_STEER_READ]
    assert receipt == {"id": message_id, "turn": 3}


def test_a_message_that_nobody_would_read_is_refused_with_the_reason(api: Api, run: Run):
    behind = started(run.thread, "next")
    problem = is_problem(api("POST", f"/runs/{behind.pk}/steer", {"text": "hello"}), 409, "not_steerable")
    assert problem["reason"] == "waiting"
    capped(run)
    problem = is_problem(api("POST", f"/runs/{run.pk}/steer", {"text": "hello"}), 409, "not_steerable")
    assert problem["reason"] == "ended"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/text"),
        ({"text": " "}, "/text"),
        ({"text": 5}, "/text"),
        ({"text": None}, "/text"),
        ({"text": "x" * 200_001}, "/text"),
        ({"text": "hello", "turn": 3}, "/turn"),
        (["hello"], ""),
    ],
)
def test_a_wrong_message_is_named_by_a_pointer(api: Api, run: Run, body: object, pointer: str):
    problem = is_problem(api("POST", f"/runs/{run.pk}/steer", body), 422, "invalid")
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


# --- continue -----------------------------------------------------------------------------------------------------
def test_going_on_doubles_the_limit_that_stopped_it_or_takes_the_one_asked_for(api: Api, run: Run):
    capped(run)
    answer = api("POST", f"/runs/{run.pk}/continue", {})
    assert answer.status_code == 202
    body = answer.json()
    assert (body["continues_id"], body["thread_id"], body["status"]) == (str(run.pk), str(run.thread_id), "pending")
    assert body["options"]["raised"] == {"max_turns": 20}
    assert api.get(answer["location"].removeprefix("/api/v1")).json()["id"] == body["id"]
    other = capped(started(ThreadFactory(owner=api.user)))
    asked = api("POST", f"/runs/{other.pk}/continue", {"limits": {"max_turns": 77}}).json()
    assert asked["options"]["raised"] == {"max_turns": 77}


def test_what_cannot_be_gone_on_from_says_so(api: Api, run: Run):
    is_problem(api("POST", f"/runs/{run.pk}/continue", {}), 409, "not_continuable")
    capped(run)
    for limits, pointer in (({"turns": 5}, "/limits/turns"), ({"max_turns": 0}, "/limits/max_turns"), (5, "/limits")):
        problem = is_problem(api("POST", f"/runs/{run.pk}/continue", {"limits": limits}), 422, "invalid")
        assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert Run.objects.count() == 1


# --- starting -----------------------------------------------------------------------------------------------------
def test_a_run_is_asked_for_and_found(api: Api, thread: Thread):
    sent = {"text": "Compare three apps", "options": {"subagent_enabled": False}, "agent": "lead_agent"}
    answer = api("POST", f"/threads/{thread.pk}/runs", sent)
    assert answer.status_code == 202
    assert api.get(answer["location"].removeprefix("/api/v1")).json() == answer.json()
    run = Run.objects.get()
    assert (run.agent, run.options) == ("lead_agent", {"subagent_enabled": False})


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/text"),
        ({"text": "x", "agent": "nobody"}, "/agent"),
        ({"text": "x", "agent": 5}, "/agent"),
        ({"text": "x", "options": []}, "/options"),
        ({"text": "x", "options": {"subagent_enabled": "yes"}}, "/options/subagent_enabled"),
        ({"text": "x", "options": {"agent_name": "nobody"}}, "/options/agent_name"),
        ({"text": "x", "multitask_strategy": "replace"}, "/multitask_strategy"),
        ({"text": "x", "multitask_strategy": {}}, "/multitask_strategy"),
        ({"text": "x", "model": "gpt"}, "/model"),
    ],
)
def test_a_wrong_request_is_named_by_a_pointer_and_starts_nothing(api: Api, thread: Thread, body: object, pointer: str):
    problem = is_problem(api("POST", f"/threads/{thread.pk}/runs", body), 422, "invalid")
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert not Run.objects.exists()


def test_a_second_run_waits_is_refused_or_interrupts_as_asked(api: Api, run: Run):
    path = f"/threads/{run.thread_id}/runs"
    is_problem(api("POST", path, {"text": "x", "multitask_strategy": "reject"}), 409, "thread_busy")
    behind = api("POST", path, {"text": "x"}).json()
    assert behind["why"]["what"] == "Waits behind the answer before it."
    claimed(run)
    api("POST", path, {"text": "x", "multitask_strategy": "interrupt"})
    run.refresh_from_db()
    assert run.cancel_requested == "interrupted"


def test_the_one_too_many_is_told_when_to_come_again(api: Api, thread: Thread, settings: Settings, tmp_path: Path):
    settings.CONFIG_FILE = tmp_path / "config.yaml"
    settings.CONFIG_FILE.write_text("runs: {max_pending_per_owner: 1}\n")
    registry.forget()
    assert api("POST", f"/threads/{thread.pk}/runs", {"text": "x"}).status_code == 202
    refused = api("POST", f"/threads/{thread.pk}/runs", {"text": "x"})
    assert "runs.max_pending_per_owner" in is_problem(refused, 429, "too_many_pending")["detail"]
    assert int(refused["retry-after"]) > 0
    registry.forget()


def test_nobody_talks_into_a_subagents_conversation(api: Api, run: Run):
    child = start_child(claimed(run))
    is_problem(api("POST", f"/threads/{child.thread_id}/runs", {"text": "x"}), 404, "not_found")
    assert api.ok(f"/threads/{child.thread_id}/events")["events"][0]["type"] == "run.queued"
    assert caller().get(f"/threads/{child.thread_id}/events").status_code == 404
