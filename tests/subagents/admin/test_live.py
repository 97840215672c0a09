from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from subagents import services
from subagents.kinds import SUBAGENT
from subagents.services import Actor
from tests.subagents.admin.conftest import LIST, page_of, stored

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
TAKEN = "subagents: {custom_agents: {scout: {description: Ours., system_prompt: Ours.}}}"


def signature(client: Client, path: str) -> str:
    found = re.search(r'data-follow="([^"]+)" data-signature="(\w+)"', client.get(path).content.decode())
    assert found and found[1] == f"{LIST}live/"
    return found[2]


@pytest.mark.smoke
@pytest.mark.parametrize("path", [LIST, page_of("managed-scout"), page_of("builtin-bash")])
def test_an_open_page_learns_of_a_conflict_that_appears_and_of_its_end(
    admin_client: Client, managed: SaveManaged, write_config: WriteConfig, path: str
):
    managed("scout")
    shown = signature(admin_client, path)
    assert admin_client.get(f"{LIST}live/", {"signature": shown}).status_code == 204
    write_config(TAKEN)
    answer = admin_client.get(f"{LIST}live/", {"signature": shown})
    assert answer.status_code == 200
    assert answer.json()["signature"] == signature(admin_client, path) != shown
    assert "The name is held" in admin_client.get(page_of("managed-scout")).content.decode()
    write_config("")
    assert admin_client.get(f"{LIST}live/", {"signature": answer.json()["signature"]}).status_code == 200
    assert "The name is held" not in admin_client.get(page_of("managed-scout")).content.decode()


def test_it_learns_of_what_somebody_else_saved(admin_client: Client, managed: SaveManaged):
    managed("scout")
    shown = signature(admin_client, LIST)
    services.update(
        SUBAGENT, "scout", {"max_turns": 9}, expected_version=stored("scout").version or "", actor=Actor(label="x")
    )
    assert admin_client.get(f"{LIST}live/", {"signature": shown}).status_code == 200


def test_asking_costs_a_few_small_queries_however_many_there_are(admin_client: Client, managed: SaveManaged):
    for number in range(30):
        managed(f"agent-{number}")
    shown = signature(admin_client, LIST)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert admin_client.get(f"{LIST}live/", {"signature": shown}).status_code == 204
    assert len(asked) <= 5, [query["sql"] for query in asked]


def test_without_any_good_configuration_it_still_answers(admin_client: Client, write_config: WriteConfig):
    write_config("subagents: [")
    answer = admin_client.get(f"{LIST}live/", {"signature": "x"})
    assert answer.status_code == 200
