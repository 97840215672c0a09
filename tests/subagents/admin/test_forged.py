"""Requests that no page of ours sends: refused or left out with a word, and never an error of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from subagents import registry
from tests.subagents.admin.browsing import form_of
from tests.subagents.admin.conftest import LIST, names, page_of, said, stored

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
READ_ONLY = ["builtin-bash", "config-analyst", "config-broken"]
NOBODY = ["1", "builtin-nobody", "managed-", "managed-nobody", "x", "config--", "a" * 3000, "%00", "..%2F..", "_3C"]
CONFIG = """
sandbox: {provider: local, allow_host_bash: true}
subagents:
  custom_agents:
    analyst: {description: Asks the warehouse., system_prompt: Query.}
    broken: {description: 7}
"""


@pytest.fixture(autouse=True)
def everything(managed: SaveManaged, write_config: WriteConfig) -> None:
    managed("scout")
    managed("translator", enabled=False)
    write_config(CONFIG)


def whole_form(client: Client) -> dict[str, Any]:
    return {**form_of(client.get(page_of("managed-scout")), "tools-choice"), "description": "Changed.", "_save": "1"}


@pytest.mark.smoke
@pytest.mark.parametrize("key", READ_ONLY)
def test_a_change_of_a_read_only_entry_is_forbidden(admin_client: Client, key: str):
    before = registry.current(fresh=True)
    for form in (whole_form(admin_client), {"_continue": "1"}, {}):
        assert admin_client.post(page_of(key), form).status_code == 403
    assert registry.current(fresh=True).catalogue.entries == before.catalogue.entries


@pytest.mark.smoke
@pytest.mark.parametrize("key", READ_ONLY)
def test_a_deletion_of_a_read_only_entry_is_forbidden(admin_client: Client, key: str):
    for method in (admin_client.get, admin_client.post):
        assert method(f"{LIST}{key}/delete/", {"post": "yes", "version": "1"}).status_code == 403
    assert names() == ["scout", "translator"]


@pytest.mark.parametrize("key", READ_ONLY)
@pytest.mark.parametrize("word", ["on", "off"])
def test_the_switch_of_a_read_only_entry_is_forbidden(admin_client: Client, key: str, word: str):
    assert admin_client.post(f"{LIST}switch/", {word: key}).status_code == 403


@pytest.mark.smoke
@pytest.mark.parametrize("action", ["enable", "disable"])
def test_read_only_rows_of_a_bulk_action_are_left_out_with_a_word(admin_client: Client, action: str):
    form = {"action": action, "_selected_action": [*READ_ONLY, "managed-scout", "managed-translator"], "index": "0"}
    answer = admin_client.post(LIST, form, follow=True)
    assert answer.status_code == 200
    assert "3 rows were left out" in said(answer)
    assert stored("scout").enabled is stored("translator").enabled is (action == "enable")


@pytest.mark.parametrize("action", ["delete_selected", "", "bogus", "\x00"])
def test_an_action_that_does_not_exist_changes_nothing(admin_client: Client, action: str):
    form = {"action": action, "_selected_action": ["managed-scout"], "post": "yes", "index": "0"}
    assert admin_client.post(LIST, form, follow=True).status_code == 200
    assert names() == ["scout", "translator"]


@pytest.mark.parametrize("key", NOBODY)
def test_an_address_that_is_nobodys_leads_back_to_the_list(admin_client: Client, key: str):
    for path in (page_of(key), f"{LIST}{key}/history/", f"{LIST}{key}/history/1/", f"{LIST}{key}/delete/"):
        assert admin_client.get(path, follow=True).redirect_chain, path
    for path in (page_of(key), f"{LIST}{key}/delete/"):
        answer = admin_client.post(path, {"version": "1"}, follow=True)
        assert answer.status_code == 200
    assert admin_client.post(f"{LIST}switch/", {"on": key}, follow=True).status_code == 200
    form = {"action": "enable", "_selected_action": [key], "index": "0"}
    assert admin_client.post(LIST, form, follow=True).status_code == 200
    assert names() == ["scout", "translator"]


@pytest.mark.parametrize("client_name", ["viewer", "prompt_reader"])
def test_view_only_staff_change_nothing(request: pytest.FixtureRequest, client_name: str, admin_client: Client):
    client = request.getfixturevalue(client_name)
    form = whole_form(admin_client)
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}add/", {**form, "name": "new"}).status_code == 403
    assert client.post(page_of("managed-scout"), form).status_code == 403
    assert client.get(f"{LIST}managed-scout/delete/").status_code == 403
    assert client.post(f"{LIST}managed-scout/delete/", {"version": "1"}).status_code == 403
    assert client.post(f"{LIST}switch/", {"off": "managed-scout"}).status_code == 403
    bulk = {"action": "disable", "_selected_action": ["managed-scout"], "index": "0"}
    assert client.post(LIST, bulk).status_code == 403
    assert stored("scout").enabled
    assert names() == ["scout", "translator"]


@pytest.mark.parametrize(
    "path", ["", "managed-scout/change/", "managed-scout/history/", "live/", "builtin-bash/change/"]
)
def test_staff_without_any_permission_see_nothing(outsider: Client, path: str):
    assert outsider.get(LIST + path).status_code == 403


@pytest.mark.parametrize("path", ["", "managed-scout/change/", "add/", "live/", "switch/"])
def test_nobody_sees_anything_without_logging_in(client: Client, path: str):
    assert client.get(LIST + path).status_code == 302


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
@pytest.mark.parametrize(
    "path", ["", "managed-scout/change/", "add/", "managed-scout/delete/", "managed-scout/history/"]
)
def test_other_methods_change_nothing(admin_client: Client, method: str, path: str):
    assert getattr(admin_client, method)(LIST + path).status_code == 403
    assert names() == ["scout", "translator"]


def test_a_form_without_its_token_is_refused(admin_client: Client):
    admin_client.handler.enforce_csrf_checks = True
    for path in (LIST, page_of("managed-scout"), f"{LIST}add/", f"{LIST}switch/", f"{LIST}managed-scout/delete/"):
        assert admin_client.post(path, {"off": "managed-scout"}).status_code == 403
    assert stored("scout").enabled


@pytest.mark.parametrize("query", ["//evil.example", "https://evil.example", "\r\nLocation: x", "q=1#x", "<script>"])
def test_a_switch_leads_back_to_the_list_and_nowhere_else(admin_client: Client, query: str):
    answer = admin_client.post(f"{LIST}switch/", {"off": "managed-scout", "query": query})
    assert answer["Location"].startswith(LIST)
    assert "\n" not in answer["Location"]
