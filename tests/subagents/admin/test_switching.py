from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry

from subagents import registry, services
from subagents.kinds import SUBAGENT
from tests.subagents.admin.browsing import form_of
from tests.subagents.admin.conftest import LIST, Spoil, said, stored

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged

pytestmark = pytest.mark.django_db
SWITCH = f"{LIST}switch/"


@pytest.mark.smoke
def test_a_row_is_switched_by_a_small_form_that_needs_no_script(admin_client: Client, managed: SaveManaged):
    managed("scout")
    page = admin_client.get(f"{LIST}?q=scout&source=managed")
    button = re.search(r'<button type="submit" form="sa-switch" name="(\w+)" value="([\w-]+)"', page.content.decode())
    assert button and button.groups() == ("off", "managed-scout")
    form = form_of(page, "query")
    answer = admin_client.post(SWITCH, {**form, button[1]: button[2]})
    assert answer["Location"] == f"{LIST}?q=scout&source=managed#switch-managed-scout"
    assert not stored("scout").enabled
    assert "scout" not in registry.current().catalogue.runnable
    after = admin_client.get(LIST).content.decode()
    assert 'name="on" value="managed-scout"' in after
    assert 'aria-checked="false" aria-label="Enable scout"' in after


def test_only_managed_rows_that_can_be_read_have_a_switch(
    admin_client: Client, managed: SaveManaged, spoil: Spoil, viewer: Client
):
    managed("scout")
    managed("broken")
    spoil("broken")
    assert re.findall(r'form="sa-switch" name="\w+" value="([\w-]+)"', admin_client.get(LIST).content.decode()) == [
        "managed-scout"
    ]
    assert 'form="sa-switch" name' not in viewer.get(LIST).content.decode()


@pytest.mark.smoke
def test_several_are_switched_at_once_with_one_history_entry_each(admin_client: Client, managed: SaveManaged):
    for name in ("one", "two", "three"):
        managed(name, enabled=name != "three")
    form = {
        "action": "disable",
        "_selected_action": [f"managed-{name}" for name in ("one", "two", "three")],
        "index": "0",
    }
    answer = admin_client.post(f"{LIST}?source=managed", form, follow=True)
    assert answer.redirect_chain == [(f"{LIST}?source=managed", 302)]
    assert "2 are disabled now: one, two." in said(answer)
    assert "1 was so already." in said(answer)
    assert [services.revisions(SUBAGENT, name)[0].action for name in ("one", "two", "three")] == [
        "disabled",
        "disabled",
        "created",
    ]
    assert LogEntry.objects.count() == 2


def test_all_rows_of_a_filtered_list_can_be_chosen_across_pages(admin_client: Client, managed: SaveManaged):
    for number in range(55):
        managed(f"agent-{number}")
    managed("other")
    form = {"action": "disable", "_selected_action": ["managed-agent-1"], "select_across": "1", "index": "0"}
    admin_client.post(f"{LIST}?q=agent", form)
    items = registry.store(SUBAGENT).all().items
    assert {item.name for item in items if item.enabled} == {"other"}


def test_a_broken_row_is_not_switched_and_the_page_says_why(admin_client: Client, managed: SaveManaged, spoil: Spoil):
    managed("broken")
    managed("scout")
    spoil("broken")
    form = {"action": "disable", "_selected_action": ["managed-broken", "managed-scout"], "index": "0"}
    answer = admin_client.post(LIST, form, follow=True)
    assert "broken: It cannot be read. Open it to repair or delete it." in said(answer)
    assert not stored("scout").enabled


def test_an_action_without_rows_says_what_is_missing(admin_client: Client, managed: SaveManaged):
    managed("scout")
    answer = admin_client.post(LIST, {"action": "disable", "index": "0"}, follow=True)
    assert answer.status_code == 200
    assert "must be selected" in said(answer)


def test_view_only_staff_are_offered_no_action(viewer: Client, managed: SaveManaged):
    managed("scout")
    page = viewer.get(LIST).content.decode()
    assert "_selected_action" not in page
    assert 'name="action"' not in page
