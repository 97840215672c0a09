from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from engine.config.schema import TokenBudgetConfig
from subagents.definitions import Source
from subagents.errors import InvalidDefinition, NameTaken, StaleVersion, SubagentNotFound
from subagents.models import ManagedSubagent
from subagents.stores.database import DatabaseStore
from tests.subagents.making import definition

pytestmark = pytest.mark.django_db
store = DatabaseStore()


def test_a_definition_comes_back_as_it_was_stored_with_its_version():
    written = definition(
        "scout",
        display_name="Späher 侦察",
        system_prompt="{{ x }} %s {y} <b>\r\n",
        tools=(),
        skills=("a",),
        disallowed_tools=("bash",),
        token_budget=TokenBudgetConfig(max_tokens=5000),
        max_turns=7,
        enabled=False,
    )
    stored = store.put(written, expected_version=None, user=None)
    assert stored.version == 1
    assert replace(stored, version=None, updated_at=None) == written
    assert store.all().definitions == (stored,)


def test_a_save_on_the_expected_version_makes_the_next_one_and_notes_who_saved():
    store.put(definition("scout"), expected_version=None, user=None)
    user = get_user_model().objects.create_user("ada")
    stored = store.put(definition("scout", max_turns=9), expected_version=1, user=user)
    assert (stored.version, stored.max_turns) == (2, 9)
    assert ManagedSubagent.objects.get().updated_by == user


def test_a_stale_save_is_refused_and_changes_nothing():
    store.put(definition("scout"), expected_version=None, user=None)
    store.put(definition("scout", max_turns=9), expected_version=1, user=None)
    with pytest.raises(StaleVersion) as stale:
        store.put(definition("scout", max_turns=10), expected_version=1, user=None)
    assert (stale.value.expected, stale.value.current) == (1, 2)
    assert store.get("scout").max_turns == 9


def test_saving_what_has_been_deleted_is_refused():
    with pytest.raises(StaleVersion) as stale:
        store.put(definition("scout"), expected_version=1, user=None)
    assert stale.value.current is None


def test_a_second_definition_of_one_name_is_refused():
    store.put(definition("scout"), expected_version=None, user=None)
    with pytest.raises(NameTaken) as taken:
        store.put(definition("scout"), expected_version=None, user=None)
    assert taken.value.source is Source.MANAGED
    assert ManagedSubagent.objects.count() == 1


def test_deleting_needs_the_current_version_and_happens_once():
    store.put(definition("scout"), expected_version=None, user=None)
    with pytest.raises(StaleVersion):
        store.delete("scout", expected_version=2)
    store.delete("scout", expected_version=1)
    with pytest.raises(SubagentNotFound):
        store.delete("scout", expected_version=1)
    with pytest.raises(SubagentNotFound):
        store.get("scout")


@pytest.mark.parametrize(
    "columns",
    [
        {"tools": {"a": 1}},
        {"tools": "bash"},
        {"token_budget": [1]},
        {"max_turns": 5000},
        {"description": ""},
        {"skills": [1]},
        {"disallowed_tools": "x"},
    ],
)
def test_a_row_that_breaks_the_rules_is_reported_and_hides_nothing_else(columns: dict[str, object]):
    now = timezone.now()
    store.put(definition("scout"), expected_version=None, user=None)
    row = {"name": "odd", "description": "x", "system_prompt": "y", "created_at": now, "updated_at": now}
    ManagedSubagent.objects.create(**(row | columns))
    contents = store.all()
    assert [each.name for each in contents.definitions] == ["scout"]
    assert [each.name for each in contents.invalid] == ["odd"]
    assert contents.invalid[0].problems[0].startswith(next(iter(columns)))
    with pytest.raises(InvalidDefinition):
        store.get("odd")


def test_a_row_under_a_name_that_is_not_normalised_is_reported():
    now = timezone.now()
    ManagedSubagent.objects.create(name="Scout", description="x", system_prompt="y", created_at=now, updated_at=now)
    assert [each.name for each in store.all().invalid] == ["Scout"]


def test_every_change_changes_the_signature():
    signatures = [store.signature()]
    store.put(definition("scout"), expected_version=None, user=None)
    signatures.append(store.signature())
    store.put(definition("scout", enabled=False), expected_version=1, user=None)
    signatures.append(store.signature())
    store.delete("scout", expected_version=2)
    store.put(definition("ranger"), expected_version=None, user=None)
    signatures.append(store.signature())
    ManagedSubagent.objects.all().delete()
    assert len({*signatures}) == 4
    assert store.signature() == signatures[0]
