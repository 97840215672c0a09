from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from subagents import services
from subagents.kinds import AGENT, SUBAGENT
from subagents.services import Actor
from tests.subagents.admin.browsing import resend, send
from tests.subagents.admin.conftest import LIST, PageText, Spoil, names, said, stored

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
DELETE = f"{LIST}managed-scout/delete/"


def agent(name: str, **fields: Any) -> None:
    services.create(AGENT, {"name": name, "system_prompt": "Lead.", **fields}, actor=Actor(label="test"))


@pytest.mark.smoke
def test_the_page_names_the_custom_agents_concerned_and_says_what_happens_to_them(
    text_of: PageText, managed: SaveManaged
):
    managed("scout")
    agent("researcher", display_name="Deep <research>", allowed_subagents=["scout", "bash"])
    agent("free")
    agent("other", allowed_subagents=["bash"])
    page = text_of(DELETE)
    assert "1 custom agent names it. It keeps the name, shows it as missing" in " ".join(page.split())
    assert "Deep <research></a> <code>researcher</code>" in page
    assert "<code>free</code>" not in page
    assert "<code>other</code>" not in page


@pytest.mark.smoke
def test_deleting_removes_it_and_keeps_its_history(admin_client: Client, managed: SaveManaged):
    managed("scout")
    answer = send(admin_client, DELETE, holding="version")
    assert answer["Location"] == LIST
    assert names() == []
    assert "scout was deleted." in said(admin_client.get(LIST))
    newest = services.revisions(SUBAGENT, "scout")[0]
    assert (newest.action, newest.author.username) == ("deleted", "admin")
    assert "It has been deleted." in admin_client.get(f"{LIST}managed-scout/history/").content.decode()


def test_what_changed_since_the_page_was_opened_is_not_deleted_unseen(admin_client: Client, managed: SaveManaged):
    managed("scout")
    page = admin_client.get(DELETE)
    services.update(
        SUBAGENT, "scout", {"max_turns": 7}, expected_version=stored("scout").version or "", actor=Actor(label="other")
    )
    answer = resend(admin_client, DELETE, page, holding="version")
    assert answer.status_code == 409
    assert "Not deleted: somebody else changed it" in unescape(answer.content.decode())
    assert names() == ["scout"]
    assert resend(admin_client, DELETE, answer, holding="version").status_code == 302
    assert names() == []


def test_looking_at_the_page_deletes_nothing(admin_client: Client, managed: SaveManaged):
    managed("scout")
    admin_client.get(DELETE, {"version": stored("scout").version, "post": "yes"})
    assert names() == ["scout"]


def test_a_shadowed_entry_can_be_deleted_and_the_name_stays_with_its_holder(
    admin_client: Client, managed: SaveManaged, write_config: WriteConfig
):
    managed("scout")
    write_config("subagents: {custom_agents: {scout: {description: Ours., system_prompt: Ours.}}}")
    page = admin_client.get(DELETE)
    assert "The name stays with the entry that holds it now" in page.content.decode()
    resend(admin_client, DELETE, page, holding="version")
    assert names() == []


@pytest.mark.smoke
def test_a_broken_row_can_be_deleted_on_purpose(admin_client: Client, managed: SaveManaged, spoil: Spoil):
    managed("scout")
    spoil("scout")
    assert send(admin_client, DELETE, holding="version").status_code == 302
    assert "managed-scout" not in admin_client.get(LIST).content.decode()
