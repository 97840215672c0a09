"""Conversations and their events over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runs.lifecycle import Progress, commit_one
from runs.models import Run, Thread
from tests.access.calling import is_problem
from tests.runs.acts import claimed, delta, finish, say
from tests.runs.factories import ThreadFactory, started

if TYPE_CHECKING:
    from tests.access.calling import Api

pytestmark = pytest.mark.django_db


def test_a_conversation_is_begun_found_and_listed_with_the_latest_first(api: Api):
    answer = api("POST", "/threads", {"title": "  Three\n apps "})
    assert answer.status_code == 201
    assert api.get(answer["location"].removeprefix("/api/v1")).json() == answer.json()
    assert answer.json()["title"] == "Three apps"
    other = api("POST", "/threads", {}).json()
    busy = Thread.objects.get(pk=answer.json()["id"])
    started(busy)
    assert [one["id"] for one in api.ok("/threads")["results"]] == [str(busy.pk), other["id"]]
    assert [one["id"] for one in api.ok("/threads?status=busy")["results"]] == [str(busy.pk)]
    assert [one["id"] for one in api.ok("/threads?q=APPS")["results"]] == [str(busy.pk)]


@pytest.mark.parametrize(("body", "pointer"), [({"title": 5}, "/title"), ({"title": "x" * 201}, "/title"), ([], "")])
def test_a_wrong_title_is_named_by_a_pointer(api: Api, body: object, pointer: str):
    problem = is_problem(api("POST", "/threads", body), 422, "invalid")
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_pages_of_conversations_show_each_once(api: Api):
    threads = {str(ThreadFactory(owner=api.user).pk) for _ in range(5)}
    seen, path = [], "/threads?page_size=2"
    while path:
        page = api.ok(path)
        seen += [one["id"] for one in page["results"]]
        path = (page["next"] or "").removeprefix("/api/v1")
    assert len(seen) == 5
    assert set(seen) == threads


def test_events_past_a_number_in_pages_make_up_the_whole_log(api: Api, run: Run):
    held = claimed(run)
    for number in range(4):
        say(held, f"step {number}")
    finish(held, answer="Done.")
    whole = api.ok(f"/threads/{run.thread_id}/events")
    assert [event["seq"] for event in whole["events"]] == list(range(1, whole["next"] + 1))
    assert whole["more"] is False
    seen, after, more = [], 0, True
    while more:
        part = api.ok(f"/threads/{run.thread_id}/events?after={after}&limit=3")
        seen += part["events"]
        after, more = part["next"], part["more"]
    assert seen == whole["events"]
    beyond = api.ok(f"/threads/{run.thread_id}/events?after={2**63 - 1}")
    assert (beyond["events"], beyond["more"]) == ([], False)


def test_the_pieces_of_a_reply_are_there_until_it_is_whole(api: Api, run: Run):
    held = claimed(run)
    commit_one(Progress(held=held, entries=[delta("Do"), delta("ne.")]))

    def pieces() -> list[str]:
        events = api.ok(f"/threads/{run.thread_id}/events")["events"]
        return [event["data"]["text"] for event in events if event["type"] == "delta"]

    assert pieces() == ["Do", "ne."]
    finish(held, answer="Done.")
    assert pieces() == []


@pytest.mark.parametrize("wrong", ["after=-1", "after=x", f"after={2**63}", "limit=0", "limit=5000", "wait=1"])
def test_a_wrong_place_is_refused_by_name(api: Api, run: Run, wrong: str):
    problem = is_problem(api.get(f"/threads/{run.thread_id}/events?{wrong}"), 422, "invalid")
    assert problem["errors"][0]["pointer"] == f"?{wrong.partition('=')[0]}"
