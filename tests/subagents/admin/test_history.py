from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from subagents import services
from subagents.kinds import SUBAGENT
from subagents.services import Actor
from tests.subagents.admin.browsing import send
from tests.subagents.admin.conftest import LIST, PageText, page_of, stored

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db
HISTORY = f"{LIST}managed-scout/history/"


def change(**changes: Any) -> None:
    services.update(
        SUBAGENT, "scout", changes, expected_version=stored("scout").version or "", actor=Actor(label="API key robot")
    )


def lines(page: str) -> list[list[str]]:
    """The cells of the table, row by row, in words."""
    body = page.split('<table class="sa-table')[1].split("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[" ".join(re.sub(r"<[^>]+>", "", cell).split()) for cell in row] for row in cells][1:]


@pytest.mark.smoke
def test_every_change_is_listed_with_author_action_and_changed_fields(
    admin_client: Client, managed: SaveManaged, text_of: PageText
):
    managed("scout")
    send(admin_client, page_of("managed-scout"), max_turns="9", description="Looks further.")
    change(enabled=False)
    shown = [[number, who, action, fields] for number, _when, who, action, fields in lines(text_of(HISTORY))]
    assert shown == [
        ["3", "API key robot", "Disabled", "Enabled"],
        ["2", "admin", "Changed", "When to use it, Turns at most"],
        ["1", "test", "Created", "–"],
    ]


def test_each_version_can_be_looked_at_as_a_whole(managed: SaveManaged, text_of: PageText):
    managed("scout", tools=["ls"], token_budget={"max_tokens": 5000}, system_prompt="First {{ prompt }}.")
    change(tools=None, max_turns=9)
    first, second = text_of(f"{HISTORY}1/"), text_of(f"{HISTORY}2/")
    values = {label.split()[-1]: value for label, value in lines(first.replace("<code>", " "))}
    assert list(values) == [
        *("name", "display_name", "description", "enabled", "model", "tools", "disallowed_tools", "skills"),
        *("system_prompt", "max_turns", "timeout_seconds", "token_budget"),
    ]
    assert (values["tools"], values["max_turns"]) == ("ls", "inherit")
    assert values["token_budget"] == "Tokens at most: 5,000"
    assert "First {{ prompt }}." in first
    assert second.count(">changed</span>") == 2
    assert "all of the lead's tools" in second


def test_prompts_of_versions_are_shown_only_to_those_who_may_read_them(
    managed: SaveManaged, viewer: Client, prompt_reader: Client
):
    managed("scout", system_prompt="The secret of the house.")
    assert "The secret" in prompt_reader.get(f"{HISTORY}1/").content.decode()
    page = viewer.get(f"{HISTORY}1/").content.decode()
    assert "The secret" not in page
    assert "You may not read prompts" in page
    assert "The secret" not in viewer.get(HISTORY).content.decode()


def test_a_prompt_of_an_old_version_is_text_and_never_markup(admin_client: Client, managed: SaveManaged):
    managed("scout", system_prompt="</pre><script>alert(1)</script>", display_name="<b>x</b>")
    page = admin_client.get(f"{HISTORY}1/").content.decode()
    assert "<script>alert(1)" not in page
    assert "<b>x</b>" not in page


@pytest.mark.parametrize("number", ["0", "7", "99999999999999999999999"])
def test_a_version_that_does_not_exist_leads_back_to_the_list(admin_client: Client, managed: SaveManaged, number: str):
    managed("scout")
    assert admin_client.get(f"{HISTORY}{number}/")["Location"] == LIST


@pytest.mark.parametrize("key", ["builtin-bash", "config-analyst"])
def test_read_only_entries_say_that_they_have_no_history_here(
    text_of: PageText, write_config: WriteConfig, key: str, managed: SaveManaged
):
    managed("analyst")
    write_config("subagents: {custom_agents: {analyst: {description: Asks., system_prompt: Query.}}}")
    page = text_of(f"{LIST}{key}/history/")
    assert "have no history here" in page
    assert "<table" not in page.split('id="content-main"')[1]
