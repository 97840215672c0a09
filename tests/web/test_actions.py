from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.test import Client

from runs import services
from runs.models import Run, Thread
from runs.statuses import RunStatus
from tests.web.conftest import BACKEND
from tests.web.log_writer import LogWriter

pytestmark = pytest.mark.django_db


def post(client: Client, path: str, body: Any = None, **extra: Any) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
    return client.post(path, data=content, content_type="application/json", **extra)


def says(answer: Any) -> tuple[int, str, str]:
    problem = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["detail"]
    return answer.status_code, problem["code"], problem.get("field", "")


def test_a_first_message_makes_a_thread_and_its_run(browser, lin):
    answer = post(browser, "/chat/new", {"text": "Research Acme", "options": {"subagent_enabled": False}})
    assert answer.status_code == 201
    run = Run.objects.get(pk=answer.json()["run_id"])
    assert (run.thread.owner, run.status, run.options) == (lin, RunStatus.PENDING, {"subagent_enabled": False})
    assert answer.headers["Location"] == answer.json()["url"] == f"/chat/{run.thread_id}/"


def test_a_message_behind_a_pending_run_waits_for_its_turn(browser):
    first = post(browser, "/chat/new", {"text": "One"}).json()
    second = post(browser, f"/chat/{first['thread_id']}/messages", {"text": "Two"})
    assert second.status_code == 202
    assert Run.objects.get(pk=second.json()["run_id"]).queue_id is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n\t "}, "text"),
        ({"text": 5}, "text"),
        ({"text": None}, "text"),
        ({"text": "x" * 200_001}, "text"),
        ({"text": "x", "options": []}, "options"),
        ({"text": "x", "options": {"subagent_enabled": "yes"}}, "options.subagent_enabled"),
        ({"text": "x", "options": {"max_total_subagents": True}}, "options.max_total_subagents"),
        ([], ""),
        (b"nonsense", ""),
        (b'{"text": "\xff"}', ""),
        (b"[" * 100_000, ""),
    ],
)
@pytest.mark.parametrize("path", ["/chat/new", "/chat/{thread}/messages"])
def test_a_message_that_cannot_be_taken_is_refused_with_its_field_and_leaves_nothing(browser, log, path, body, field):
    answer = post(browser, path.format(thread=log.thread.pk), body)
    assert says(answer) == (422, "invalid", field)
    assert (Thread.objects.count(), Run.objects.count()) == (1, 0)


def test_a_body_no_message_could_need_is_refused_as_too_large(browser, log):
    answer = post(browser, f"/chat/{log.thread.pk}/messages", b'{"text": "' + b"x" * (4 << 20) + b'"}')
    assert says(answer) == (413, "too_large", "text")


def test_the_longest_message_is_taken(browser):
    assert post(browser, "/chat/new", {"text": "语" * 200_000}).status_code == 201


@pytest.mark.parametrize(
    ("text", "kept"), [("a\x00b", "a\ufffdb"), ("x\ud83d", "x\ufffd"), ("\ud83d\ude42", "🙂"), ("ok", "ok")]
)
def test_text_that_no_database_could_take_is_cleaned_and_kept(browser, text, kept):
    answer = post(browser, "/chat/new", {"text": text})
    assert answer.status_code == 201
    thread = Thread.objects.get(pk=answer.json()["thread_id"])
    assert orjson.loads(thread.messages.get().data)["content"] == kept


ACTIONS = ["messages", "stop-all", "rename", "delete", "runs/{run}/cancel", "runs/{run}/send-now", "runs/{run}/remove"]


@pytest.mark.parametrize("action", ACTIONS)
def test_the_thread_of_another_person_is_not_there(log, stranger, action):
    client = Client()
    client.force_login(stranger, backend=BACKEND)
    path = f"/chat/{log.thread.pk}/" + action.format(run=log.run().pk)
    assert post(client, path, {"text": "x", "title": "x"}).status_code == 404
    assert Thread.objects.filter(pk=log.thread.pk, title="A conversation").exists()


@pytest.mark.parametrize("verb", ["cancel", "send-now", "remove"])
def test_a_run_of_another_thread_is_not_there_even_for_its_owner(browser, lin, log, verb):
    other = LogWriter(lin).run()
    assert says(post(browser, f"/chat/{log.thread.pk}/runs/{other.pk}/{verb}")) == (404, "run_not_found", "")
    assert says(post(browser, f"/chat/{log.thread.pk}/runs/{uuid4()}/{verb}")) == (404, "run_not_found", "")


@pytest.mark.parametrize("action", ["new", *[f"{{thread}}/{action}" for action in ACTIONS]])
def test_without_a_session_nothing_happens_and_the_page_can_tell(log, action):
    path = "/chat/" + action.format(thread=log.thread.pk, run=uuid4())
    assert says(post(Client(), path, {"text": "x"})) == (401, "not_signed_in", "")


def test_a_request_without_the_token_is_refused(lin, log):
    client = Client(enforce_csrf_checks=True)
    client.force_login(lin, backend=BACKEND)
    assert post(client, f"/chat/{log.thread.pk}/messages", {"text": "x"}).status_code == 403
    assert Run.objects.count() == 0


def test_actions_are_posts(browser, log):
    assert browser.get(f"/chat/{log.thread.pk}/messages").status_code == 405


def test_cancel_reaches_a_waiting_run_and_names_who_did_it(browser):
    made = post(browser, "/chat/new", {"text": "One"}).json()
    answer = post(browser, f"/chat/{made['thread_id']}/runs/{made['run_id']}/cancel")
    assert (answer.status_code, answer.json()["done"]) == (202, True)
    run = Run.objects.get(pk=made["run_id"])
    assert (run.status, run.cancelled_by) == (RunStatus.CANCELLED, "lin")
    assert post(browser, f"/chat/{made['thread_id']}/runs/{made['run_id']}/cancel").json() == {
        "done": False,
        "what": [],
    }


def test_a_queued_message_can_be_taken_back(browser):
    thread_id = post(browser, "/chat/new", {"text": "One"}).json()["thread_id"]
    queued = post(browser, f"/chat/{thread_id}/messages", {"text": "Two"}).json()["run_id"]
    assert post(browser, f"/chat/{thread_id}/runs/{queued}/remove").json() == {"done": True}
    assert Run.objects.get(pk=queued).status == RunStatus.CANCELLED


def test_a_child_of_the_threads_run_can_be_cancelled_by_itself(browser, lin, log):
    lead = log.run()
    child = LogWriter(lin).run(root_id=lead.pk, parent=lead, tool_call_id="c1")
    answer = post(browser, f"/chat/{log.thread.pk}/runs/{child.pk}/cancel")
    assert (answer.status_code, answer.json()["done"]) == (202, True)
    assert not Run.objects.get(pk=lead.pk).cancel_requested


def test_stop_all_says_what_was_stopped(browser):
    thread_id = post(browser, "/chat/new", {"text": "One"}).json()["thread_id"]
    post(browser, f"/chat/{thread_id}/messages", {"text": "Two"})
    answer = post(browser, f"/chat/{thread_id}/stop-all").json()
    assert answer["stopped"] == 2
    assert {(one["kind"], one["agent"]) for one in answer["what"]} == {("message", "lead_agent")}
    assert {one["run_id"] for one in answer["what"]} == {str(pk) for pk in Run.objects.values_list("pk", flat=True)}
    assert not Run.objects.active().exists()


def test_stopping_the_answer_names_its_tasks_and_nothing_else(browser, lin, log):
    lead = log.run(attempt=1)
    LogWriter(lin).run(root_id=lead.pk, parent=lead, tool_call_id="c1", depth=1, agent="scout", title="Find sources")
    post(browser, f"/chat/{log.thread.pk}/messages", {"text": "And then?"})
    answer = post(browser, f"/chat/{log.thread.pk}/runs/{lead.pk}/cancel").json()
    assert [(one["kind"], one["agent"], one["title"]) for one in answer["what"]] == [
        ("answer", lead.agent, ""),
        ("task", "scout", "Find sources"),
    ]


def test_a_running_task_can_be_told_something_until_it_has_ended(browser, lin, log):
    lead = log.run()
    child = LogWriter(lin).run(root_id=lead.pk, parent=lead, tool_call_id="c1", depth=1)
    answer = post(browser, f"/chat/{log.thread.pk}/runs/{child.pk}/steer", {"text": "Look at 2024 too"})
    assert answer.status_code == 202
    assert Run.objects.get(pk=child.pk).steers[0]["id"] == answer.json()["message_id"]
    Run.objects.filter(pk=child.pk).update(status=RunStatus.SUCCESS)
    refused = post(browser, f"/chat/{log.thread.pk}/runs/{child.pk}/steer", {"text": "too late"})
    assert says(refused) == (409, "run_ended", "")
    assert says(post(browser, f"/chat/{log.thread.pk}/runs/{child.pk}/steer", {"text": " "})) == (
        422,
        "invalid",
        "text",
    )


def test_what_was_stopped_can_be_continued_once(browser, log):
    lead = log.run()
    Run.objects.filter(pk=lead.pk).update(
        status=RunStatus.SUCCESS, stop_reason="turn_capped", stop_detail={"limit": 50}, queue_id=None
    )
    address = f"/chat/{log.thread.pk}/runs/{lead.pk}/continue"
    assert says(post(browser, address, {"limits": {"max_turns": 5000}})) == (422, "invalid", "limits.max_turns")
    answer = post(browser, address)
    assert answer.status_code == 202
    assert Run.objects.get(pk=answer.json()["run_id"]).options["raised"] == {"max_turns": 100}
    assert says(post(browser, address)) == (409, "not_continuable", "")


def test_one_message_too_many_is_refused_with_the_setting_and_the_limit(browser, monkeypatch):
    real = services.start_verb
    monkeypatch.setattr(services, "start_verb", lambda **fields: replace(real(**fields), most_pending=1))
    post(browser, "/chat/new", {"text": "One"})
    answer = post(browser, "/chat/new", {"text": "Two"})
    assert says(answer) == (429, "too_many_pending", "runs.max_pending_per_owner")
    assert (answer.json()["limit"], answer["Retry-After"]) == (1, "5")


def test_the_page_can_ask_why_its_runs_wait(browser, stranger):
    created = post(browser, "/chat/new", {"text": "One"}).json()
    address = f"/chat/{created['thread_id']}/standing"
    assert browser.get(address).json() == {"runs": {created["run_id"]: "No worker is running. Place 1 in line."}}
    other = Client()
    assert other.get(address).status_code == 401
    other.force_login(stranger, backend=BACKEND)
    assert other.get(address).status_code == 404


def test_nobody_talks_past_the_lead_to_a_subagents_thread(browser, lin, log):
    child = LogWriter(lin)
    Thread.objects.filter(pk=child.thread.pk).update(parent_run=log.run())
    assert says(post(browser, f"/chat/{child.thread.pk}/messages", {"text": "x"})) == (404, "thread_not_found", "")


def test_a_title_is_one_clean_line(browser, log):
    answer = post(browser, f"/chat/{log.thread.pk}/rename", {"title": "  New\n title\x00 "})
    assert answer.json() == {"title": "New title\ufffd"}
    assert Thread.objects.get(pk=log.thread.pk).title == "New title\ufffd"


@pytest.mark.parametrize("title", ["", "  ", None, 5, "x" * 201])
def test_a_title_that_is_none_is_refused(browser, log, title):
    assert says(post(browser, f"/chat/{log.thread.pk}/rename", {"title": title})) == (422, "invalid", "title")


def test_deleting_a_thread_takes_its_work_and_its_log(browser):
    thread_id = post(browser, "/chat/new", {"text": "One"}).json()["thread_id"]
    assert post(browser, f"/chat/{thread_id}/delete").json() == {"url": "/chat/"}
    assert not Thread.objects.filter(pk=thread_id).exists()
    assert browser.get(f"/chat/{thread_id}/").status_code == 404
