"""Rows that break the rules: visible, explained, repaired or deleted on purpose, never overwritten unasked."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING

import pytest

from subagents import registry, services
from subagents.kinds import SUBAGENT
from tests.subagents.admin.browsing import form_of, resend, send
from tests.subagents.admin.conftest import LIST, PageText, Spoil, page_of, said, stored

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged

pytestmark = pytest.mark.django_db
PAGE = page_of("managed-scout")
REPAIRED = {"description": "Looks around again.", "system_prompt": "Look.", "tools-choice": "only", "tools": ["ls"]}


@pytest.fixture(autouse=True)
def broken(managed: SaveManaged, spoil: Spoil) -> None:
    managed("scout", system_prompt="The secret of the house.")
    managed("other")
    spoil("scout")


def test_the_page_shows_what_is_wrong_and_what_is_stored(text_of: PageText, backend: str):
    page = text_of(PAGE)
    assert "Cannot be read and does not run." in page
    assert "As it is stored" in page
    assert ("Cut sh" if backend == "file" else '"a": 1') in page
    assert "Invalid</span>" in text_of(LIST)
    assert "other" in registry.current().catalogue.runnable


def test_nothing_is_chosen_for_lists_that_cannot_be_read(admin_client: Client):
    page = admin_client.get(PAGE)
    assert "tools-choice" not in form_of(page, "version")
    answer = send(admin_client, PAGE, holding="version", description="Looks.", system_prompt="Look.")
    assert answer.status_code == 422
    assert "Choose one of the three." in answer.content.decode()


@pytest.mark.smoke
def test_saving_repairs_it_and_the_history_says_so(admin_client: Client):
    answer = send(admin_client, PAGE, holding="version", **REPAIRED, **{"skills-choice": "all"})
    assert answer["Location"] == LIST
    assert stored("scout").tools == ("ls",)
    assert services.revisions(SUBAGENT, "scout")[0].action == "repaired"
    assert "scout was repaired." in said(admin_client.get(LIST))


def test_a_row_that_changed_since_is_not_replaced(admin_client: Client):
    answer = send(admin_client, PAGE, holding="version", **REPAIRED, **{"skills-choice": "all", "version": "0"})
    assert answer.status_code == 422
    assert "changed since this page was opened" in answer.content.decode()
    entry = registry.current(fresh=True).catalogue.by_key("managed-scout")
    assert entry is not None and entry.problems


def test_whoever_may_not_read_prompts_sees_none_of_it(editor: Client, viewer: Client, backend: str):
    for client in (editor, viewer):
        page = unescape(client.get(PAGE).content.decode())
        assert "secret" not in page
        assert "As it is stored" not in page


def test_a_prompt_that_is_not_shown_survives_the_repair(editor: Client, backend: str):
    page = editor.get(PAGE)
    changes = dict(REPAIRED)
    if backend == "db":  # the other columns of a broken row can be read; half a file cannot
        assert "system_prompt" not in form_of(page, "version")
        del changes["system_prompt"]
    resend(editor, PAGE, page, holding="version", **changes, **{"skills-choice": "all"})
    assert stored("scout").system_prompt == ("The secret of the house." if backend == "db" else "Look.")


def test_its_history_can_still_be_looked_at(text_of: PageText):
    assert "Created" in text_of(f"{LIST}managed-scout/history/")
