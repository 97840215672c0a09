"""Errors in the caller's language with codes that never change, ids, and allowances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from subagents.api import examples
from tests.access.calling import BASE, Api, caller, is_problem

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("write_config")]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/subagents/", 404, "not_found"),
        ("GET", "/subagents/a/b/c", 404, "not_found"),
        ("GET", "/subagents/..%2f..%2fetc", 404, "not_found"),
        ("GET", "/subagents/%00", 404, "not_found"),
        ("GET", "/subagents/%ff%fe", 404, "not_found"),
        ("GET", "/subagents/" + "x" * 3000, 404, "not_found"),
        ("PATCH", "/subagents/%00", 404, "not_found"),
        ("GET", "/subagents/bash/versions/x", 404, "not_found"),
        ("DELETE", "/subagents", 405, "method_not_allowed"),
        ("OPTIONS", "/subagents", 405, "method_not_allowed"),
        ("TRACE", "/subagents", 405, "method_not_allowed"),
        ("POST", "/subagents/bash", 405, "method_not_allowed"),
        ("PUT", "/subagents/bash/effective", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_there_is_a_problem_document_too(api: Api, method: str, path: str, status: int, code: str):
    answer = api(method, path, if_match="*", accept="text/html,*/*")
    is_problem(answer, status, code)
    assert status != 405 or answer["allow"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "nonsense", ""])
def test_answers_are_json_whatever_is_asked_for(api: Api, accept: str):
    assert api.get("/subagents", accept=accept)["content-type"] == "application/json"
    assert api.get("/subagents?format=api").status_code == 422


def test_a_host_that_is_none_of_ours_gets_a_problem_document(api: Api):
    is_problem(api.get("/subagents", host="evil.example"), 400, "bad_request")


def test_titles_and_details_are_translated_and_codes_are_not(api: Api):
    body = {**examples.DOCUMENT, "max_turns": 0}
    english = is_problem(api("POST", "/subagents", body), 422, "invalid")
    chinese = is_problem(api("POST", "/subagents", body, accept_language="zh-CN,zh;q=0.9"), 422, "invalid")
    assert chinese["title"] != english["title"]
    for problem in (chinese["title"], chinese["detail"], chinese["errors"][0]["detail"]):
        assert any("\u4e00" <= letter <= "\u9fff" for letter in problem), problem
    for part in ("pointer", "code"):
        assert [error[part] for error in chinese["errors"]] == [error[part] for error in english["errors"]]
    note = caller("view_managedsubagent").get("/subagents/bash", accept_language="zh-hans")
    assert note.status_code == 200


@pytest.mark.parametrize("given", ["abc-123", "01J.x_y"])
def test_a_request_keeps_the_id_that_a_proxy_gave_it(api: Api, given: str):
    assert api.get("/subagents", x_request_id=given)["x-request-id"] == given
    assert is_problem(api.get("/subagents/none", x_request_id=given), 404, "not_found")["request_id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "<script>"])
def test_any_other_id_is_replaced(api: Api, given: str):
    answer = api.get("/subagents", x_request_id=given)
    assert answer["x-request-id"] != given
    assert len(answer["x-request-id"]) == 36


def test_answers_are_kept_by_nobody(api: Api):
    assert api.get("/subagents")["cache-control"] == "no-store"
    assert api.get("/subagents/none")["cache-control"] == "no-store"


def test_each_scope_has_an_allowance_of_its_own(api: Api, settings: Settings):
    settings.API_REQUESTS_PER_MINUTE = {"read": 3, "run": 3, "admin": 1}
    reads = [api.get("/subagents") for _time in range(3)]
    assert [answer["ratelimit-remaining"] for answer in reads] == ["2", "1", "0"]
    refused = api.get("/subagents")
    problem = is_problem(refused, 429, "throttled")
    assert 1 <= int(refused["retry-after"]) <= 60
    assert refused["retry-after"] in problem["detail"]
    assert api("POST", "/subagents", examples.DOCUMENT).status_code == 201
    is_problem(api("POST", "/subagents", {**examples.DOCUMENT, "name": "b"}), 429, "throttled")
    assert caller("view_managedsubagent").get("/subagents").status_code == 200


def test_a_fault_of_ours_says_nothing_of_the_inside(api: Api, monkeypatch: pytest.MonkeyPatch, caplog: Any):
    from subagents.api import subagents

    def fails(*_arguments: Any, **_keywords: Any) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(subagents.shapes, "subagent", fails)
    problem = is_problem(api.get("/subagents/bash"), 500, "internal")
    assert "inside" not in str(problem)
    assert problem["request_id"] in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_nothing_below_the_api_is_ever_a_page():
    for path in ("/api/", "/api/v2/subagents", "/api/v1", "/api/docs/x"):
        is_problem(Client().get(path), 404, "not_found")
    assert BASE
