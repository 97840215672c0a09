"""Remote agents over HTTP: the same rules as on the page, and values of headers that only go in."""

from __future__ import annotations

import pytest

from subagents import registry
from subagents.api import examples
from subagents.remote_agents import callee
from tests.access.calling import caller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("backend")]
PATH = "/remote-agents"
SECRET = examples.REMOTE_SENT["headers"]["Authorization"]


@pytest.fixture
def api(backend):
    return caller(*(f"{verb}_remoteagent" for verb in ("view", "add", "change", "delete")))


def headers_now():
    return dict(callee(registry.current(max_age=0).remotes[0].agent, {}).headers)


def test_what_was_sent_comes_back_with_masks_wherever_it_is_shown(api):
    made = api("POST", PATH, examples.REMOTE_SENT)
    assert made.status_code == 201
    assert made.json()["definition"] == examples.REMOTE_DOCUMENT
    assert set(made.json()) == set(examples.REMOTE)
    for path in (PATH, f"{PATH}/coder", f"{PATH}/coder/versions", f"{PATH}/coder/versions/1"):
        text = api("GET", path).content.decode()
        assert "7d1c90aa" not in text
        assert "sealed:" not in text
    assert headers_now() == {"Authorization": SECRET}


def test_a_document_that_was_read_can_be_sent_back_and_keeps_the_secret(api):
    api("POST", PATH, examples.REMOTE_SENT)
    answer = api("GET", f"{PATH}/coder")
    document = {**answer.json()["definition"], "display_name": "Better coder"}
    saved = api("PUT", f"{PATH}/coder", document, If_Match=answer["ETag"])
    assert (saved.status_code, saved.json()["definition"]["display_name"]) == (200, "Better coder")
    assert headers_now() == {"Authorization": SECRET}


def test_a_late_save_says_what_changed_but_no_header(api):
    first = api("POST", PATH, examples.REMOTE_SENT)
    api("PATCH", f"{PATH}/coder", {"headers": {"X-Key": "another secret"}}, If_Match=first["ETag"])
    late = api("PATCH", f"{PATH}/coder", {"enabled": False}, If_Match=first["ETag"])
    assert late.status_code == 412
    assert "headers" in late.json()["changes"]
    assert "sealed:" not in late.content.decode()


def test_faults_name_the_field(api):
    answer = api("POST", PATH, {**examples.REMOTE_SENT, "url": "nowhere", "headers": {"X Bad": "v"}})
    assert answer.status_code == 422
    assert {error["pointer"] for error in answer.json()["errors"]} == {"/url", "/headers/X Bad"}
    taken = api("POST", PATH, {**examples.REMOTE_SENT, "name": "bash"})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")


def test_the_test_of_the_connection_is_an_answer_and_is_remembered(api):
    api("POST", PATH, {**examples.REMOTE_SENT, "url": "http://127.0.0.1:1"})
    tried = api("POST", f"{PATH}/coder/test")
    assert (tried.status_code, tried.json()["fault"]) == (200, "address")
    assert api("GET", f"{PATH}/coder").json()["last_contact"]["fault"] == "address"


def test_it_is_listed_among_the_callable_with_its_source(api):
    api("POST", PATH, examples.REMOTE_SENT)
    found = caller("view_managedsubagent")("GET", "/subagents?source=remote").json()["results"]
    assert [one["name"] for one in found] == ["coder"]
    assert caller("view_managedsubagent")("GET", PATH).status_code == 403
