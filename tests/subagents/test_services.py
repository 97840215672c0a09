from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from subagents import registry
from subagents.definitions import Source
from subagents.errors import InvalidDefinition, NameTaken, StaleVersion
from subagents.services import delete_managed, save_managed
from tests.subagents.making import definition

if TYPE_CHECKING:
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db

SCOUT_IN_CONFIG = "subagents: {custom_agents: {scout: {description: Finds things., system_prompt: Look.}}}"


def test_what_is_saved_runs_at_once(managed: SaveManaged):
    registry.current()
    managed("scout")
    assert registry.current().catalogue.runnable["scout"].source is Source.MANAGED


def test_a_new_definition_may_not_take_a_built_in_name(managed: SaveManaged):
    with pytest.raises(NameTaken) as taken:
        managed("Bash")
    assert taken.value.source is Source.BUILTIN


@pytest.mark.parametrize("yaml", [SCOUT_IN_CONFIG, "subagents: {custom_agents: {scout: {description: 7}}}"])
def test_a_new_definition_may_not_take_a_name_of_the_file_even_of_a_broken_entry(
    managed: SaveManaged, write_config: WriteConfig, yaml: str
):
    write_config(yaml)
    with pytest.raises(NameTaken) as taken:
        managed("scout")
    assert taken.value.source is Source.CONFIG


def test_a_shadowed_definition_may_still_be_edited(managed: SaveManaged, write_config: WriteConfig):
    scout = managed("scout")
    write_config(SCOUT_IN_CONFIG)
    stored = save_managed(replace(scout, max_turns=9), expected_version=1, user=None)
    assert (stored.version, stored.max_turns) == (2, 9)


def test_a_stale_save_is_refused(managed: SaveManaged):
    scout = managed("scout")
    save_managed(scout, expected_version=1, user=None)
    with pytest.raises(StaleVersion):
        save_managed(scout, expected_version=1, user=None)


def test_a_definition_made_in_code_is_checked_like_any_other(write_config: WriteConfig):
    with pytest.raises(InvalidDefinition):
        save_managed(definition("scout", max_turns=0), expected_version=None, user=None)


def test_what_is_deleted_stops_running_at_once(managed: SaveManaged):
    managed("scout")
    assert "scout" in registry.current().catalogue.runnable
    delete_managed("scout", expected_version=1)
    assert "scout" not in registry.current().catalogue.runnable
