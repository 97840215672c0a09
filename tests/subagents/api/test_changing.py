"""Changing definitions over HTTP: the same on both backends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connections

from subagents.api import examples
from subagents.models import Revision
from tests.access.calling import Api, caller, is_problem
from tests.patience import PATIENCE_SECONDS
from tests.subagents.api.conftest import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.subagents.conftest import WriteConfig

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("backend")]
KINDS = [("/subagents", examples.DOCUMENT), ("/agents", examples.AGENT_DOCUMENT)]
Make = Any


@pytest.mark.parametrize(("path", "document"), KINDS)
def test_what_is_created_is_read_back_and_has_an_address_and_a_version(api: Api, path: str, document: dict[str, Any]):
    answer = api("POST", path, document)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    shown = api.client.get(answer["location"])
    assert shown.json() == made
    assert shown["etag"] == answer["etag"] == f'"{made["version"]}"'
    assert made["definition"] == document
    assert api("POST", path, made["definition"]).status_code == 409


@pytest.mark.parametrize("path", ["/subagents", "/agents"])
@pytest.mark.parametrize("value", [None, [], ["read_file"]])
def test_null_empty_and_some_stay_three_things(api: Api, make: Make, path: str, value: Any):
    make("keeper", path, tools=value, skills=value)
    assert api.ok(f"{path}/keeper")["definition"]["tools"] == value
    api("PATCH", f"{path}/keeper", {"tools": None}, if_match="*")
    assert api.ok(f"{path}/keeper")["definition"]["tools"] is None
    assert api.ok(f"{path}/keeper")["definition"]["skills"] == value


def test_saving_back_what_was_shown_to_somebody_who_may_not_read_prompts_loses_none(api: Api, make: Make):
    make("cook", system_prompt="the secret recipe")
    half = caller("view_managedsubagent", "change_managedsubagent")
    shown = half.ok("/subagents/cook")["definition"]
    assert shown["system_prompt"] is None
    changed = {**shown, "description": "Cooks better."}
    without = {name: value for name, value in changed.items() if name != "system_prompt"}
    for body in (changed, without, {**changed, "system_prompt": ""}):
        problem = is_problem(half("PUT", "/subagents/cook", body, if_match="*"), 422, "invalid")
        assert [error["pointer"] for error in problem["errors"]] == ["/system_prompt"]
    assert half("PATCH", "/subagents/cook", {"description": "Cooks better."}, if_match="*").status_code == 200
    assert api.ok("/subagents/cook")["definition"]["system_prompt"] == "the secret recipe"


@pytest.mark.parametrize("path", ["/subagents", "/agents"])
def test_a_change_touches_only_what_it_names_and_gives_a_new_version(api: Api, make: Make, path: str):
    before = make("worker", path)
    answer = api("PATCH", f"{path}/worker", {"display_name": "Other"}, if_match=f'"{before["version"]}"')
    assert answer.status_code == 200, answer.content
    after = answer.json()
    assert after["version"] != before["version"]
    assert answer["etag"] == f'"{after["version"]}"'
    assert after["definition"] == {**before["definition"], "display_name": "Other"}


@pytest.mark.parametrize("path", ["/subagents", "/agents"])
def test_replacing_sets_what_is_left_out_to_its_default(api: Api, make: Make, path: str):
    make("worker", path)
    document = {"name": "worker", "description": "Does it.", "system_prompt": "Do it."}
    after = api("PUT", f"{path}/worker", document, if_match="*").json()["definition"]
    assert (after["tools"], after["display_name"], after["enabled"]) == (None, "", True)


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
def test_whoever_changes_says_which_version_they_saw(api: Api, make: Make, method: str):
    old = make("worker")["version"]
    api("PATCH", "/subagents/worker", {"max_turns": 9}, if_match=f'"{old}"')
    body = {**examples.DOCUMENT, "name": "worker"} if method == "PUT" else {"max_turns": 8}
    sent = None if method == "DELETE" else body
    is_problem(api(method, "/subagents/worker", sent), 428, "if_match_missing")
    for header in (f'"{old}"', f'W/"{old}"', '"none"', f'"{old}", "x"', '"\xff"', '"99999999999999999999999"'):
        stale = is_problem(api(method, "/subagents/worker", sent, if_match=header), 412, "stale_version")
    for header in ("7", '"', "W/", f"{old}", '"a" "b"'):
        is_problem(api(method, "/subagents/worker", sent, if_match=header), 400, "bad_request")
    is_problem(api(method, "/subagents/nobody", sent, if_match=f'"{old}"'), 404, "not_found")
    now = api.get("/subagents/worker")["etag"]
    assert f'"{stale["current"]}"' == now
    assert api(method, "/subagents/worker", sent, if_match=f'"other", {now}').status_code in (200, 204)


def test_a_stale_save_is_told_what_somebody_else_changed(api: Api, make: Make):
    old = f'"{make("worker")["version"]}"'
    api("PATCH", "/subagents/worker", {"max_turns": 9, "system_prompt": "the secret"}, if_match=old)
    problem = is_problem(api("PATCH", "/subagents/worker", {"model": "x"}, if_match=old), 412, "stale_version")
    assert problem["changes"]["max_turns"] == {"then": 40, "now": 9}
    assert problem["changes"]["system_prompt"]["now"] == "the secret"
    blind = caller("view_managedsubagent", "change_managedsubagent")
    answer = blind("PATCH", "/subagents/worker", {"model": "x"}, if_match=old)
    assert is_problem(answer, 412, "stale_version")["changes"]["max_turns"]["now"] == 9
    assert "the secret" not in answer.content.decode()


@pytest.mark.parametrize("path", ["/subagents", "/agents"])
def test_deleting_leaves_the_history_and_frees_the_name(api: Api, make: Make, path: str):
    version = make("worker", path)["version"]
    answer = api("DELETE", f"{path}/worker", if_match=f'"{version}"')
    assert (answer.status_code, answer.content) == (204, b"")
    is_problem(api.get(f"{path}/worker"), 404, "not_found")
    is_problem(api("DELETE", f"{path}/worker", if_match="*"), 404, "not_found")
    assert [row["action"] for row in api.ok(f"{path}/worker/versions")["results"]] == ["deleted", "created"]
    make("worker", path)
    assert api.ok(f"{path}/worker/versions")["count"] == 3


def test_every_change_is_in_the_history_with_its_author(api: Api, make: Make):
    make("worker")
    api("PATCH", "/subagents/worker", {"max_turns": 9}, if_match="*")
    api("POST", "/subagents/bulk", {"action": "disable", "names": ["worker"]})
    rows = api.ok("/subagents/worker/versions")["results"]
    assert [(row["number"], row["action"]) for row in rows] == [(3, "disabled"), (2, "changed"), (1, "created")]
    assert {row["author"] for row in rows} == {api.user.username}
    assert "API key build-bot" in Revision.objects.latest("number").author_label
    assert api.ok("/subagents/worker/versions/2") == rows[1]
    assert rows[1]["document"]["max_turns"] == 9
    assert rows[2]["document"] == {**examples.DOCUMENT, "name": "worker"}
    for number in (0, 4, 10**30):
        is_problem(api.get(f"/subagents/worker/versions/{number}"), 404, "not_found")
    is_problem(api.get("/subagents/nobody/versions"), 404, "not_found")
    assert LogEntry.objects.filter(user=api.user).count() == 3


@pytest.mark.parametrize("path", ["/subagents", "/agents"])
def test_several_are_switched_at_once_and_each_says_what_happened(api: Api, make: Make, path: str):
    make("a", path)
    make("b", path, enabled=False)
    names = ["a", "B ", "gone", "../a", "nul\x00", "half \ud800", "a"]
    answer = api("POST", f"{path}/bulk", {"action": "disable", "names": names})
    assert answer.status_code == 200, answer.content
    results = {row["name"]: (row["result"], (row["problem"] or {}).get("code")) for row in answer.json()["results"]}
    assert list(results.values()) == [("changed", None), ("unchanged", None), *[("refused", "not_found")] * 4]
    assert api.names(f"{path}?state=disabled") == ["a", "b"]


def test_what_may_not_be_changed_is_refused_alone(api: Api, make: Make):
    make("a")
    rows = api("POST", "/subagents/bulk", {"action": "disable", "names": ["bash", "a"]}).json()["results"]
    assert [(row["result"], (row["problem"] or {}).get("code")) for row in rows] == [
        ("refused", "read_only"),
        ("changed", None),
    ]
    assert rows[0]["problem"]["source"] == "builtin"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/action"),
        ([], "/action"),
        ({"action": "delete", "names": ["a"]}, "/action"),
        ({"action": "enable", "names": []}, "/names"),
        ({"action": "enable", "names": "a"}, "/names"),
        ({"action": "enable", "names": ["a", 1]}, "/names"),
        ({"action": "enable", "names": ["a"] * 501}, "/names"),
        ({"action": "enable", "names": ["a"], "force": True}, "/force"),
    ],
)
def test_a_wrong_bulk_change_names_its_field(api: Api, body: Any, pointer: str):
    problem = is_problem(api("POST", "/subagents/bulk", body), 422, "invalid")
    assert problem["errors"][0]["pointer"] == pointer


def test_a_subagent_may_be_named_bulk(api: Api, make: Make):
    make("bulk")
    assert api.ok("/subagents/bulk")["name"] == "bulk"
    assert api("PATCH", "/subagents/bulk", {"max_turns": 3}, if_match="*").json()["effective"]["max_turns"] == 3
    assert api("DELETE", "/subagents/bulk", if_match="*").status_code == 204


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
def test_entries_of_other_sources_are_read_only_whatever_is_sent(api: Api, method: str):
    for body in (None, {}, {"max_turns": 1}, [1]):
        problem = is_problem(api(method, "/subagents/bash", body, if_match="*"), 409, "read_only")
        assert problem["source"] == "builtin"
    assert is_problem(api("POST", "/subagents", {**examples.DOCUMENT, "name": "Bash"}), 409, "name_taken")


def test_a_shadowed_twin_is_changed_by_its_source_only(api: Api, make: Make, write_config: WriteConfig, backend: str):
    make("writer")
    write_config(
        f"agent_storage: {{backend: {backend}}}\n"
        "subagents: {custom_agents: {writer: {description: Writes., system_prompt: Write.}}}"
    )
    is_problem(api("PATCH", "/subagents/writer", {"max_turns": 3}, if_match="*"), 409, "read_only")
    etag = api.get("/subagents/writer?source=managed")["etag"]
    answer = api("PATCH", "/subagents/writer?source=managed", {"max_turns": 3}, if_match=etag)
    assert (answer.json()["state"], answer.json()["definition"]["max_turns"]) == ("shadowed", 3)
    assert api("DELETE", "/subagents/writer?source=managed", if_match="*").status_code == 204
    assert api.ok("/subagents/writer")["source"] == "config"


@pytest.mark.django_db(transaction=True)
def test_of_those_who_save_at_once_with_one_version_one_wins(api: Api, make: Make):
    etag = f'"{make("worker")["version"]}"'
    callers = [api, *(caller(*EVERYTHING) for _number in range(3))]
    start = threading.Barrier(len(callers))
    statuses: list[int] = []

    def save(number: int, who: Api) -> None:
        try:
            start.wait(PATIENCE_SECONDS)
            statuses.append(who("PATCH", "/subagents/worker", {"max_turns": number + 1}, if_match=etag).status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=save, args=pair) for pair in enumerate(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert sorted(statuses) == [200, 412, 412, 412]
    assert api.ok("/subagents/worker/versions")["count"] == 2
    assert callable(make)


def test_history_goes_on_when_the_account_is_gone(api: Api, make: Make, write_config: Callable[..., Any]):
    make("worker")
    name = api.user.username
    api.user.delete()
    (row,) = caller(*EVERYTHING).ok("/subagents/worker/versions")["results"]
    assert name in row["author"]
