from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from subagents.checks import check_subagents
from subagents.models import ConfigSnapshot
from subagents.registry import Observer

if TYPE_CHECKING:
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db(transaction=True)


def found() -> dict[str, list[str]]:
    by_id: dict[str, list[str]] = {}
    for message in check_subagents():
        by_id.setdefault(str(message.id), []).append(str(message.msg))
    return by_id


def test_a_sound_installation_has_nothing_to_report(managed: SaveManaged):
    managed("scout")
    assert found() == {}


def test_a_refused_file_without_a_good_one_is_an_error_with_every_place(write_config: WriteConfig):
    write_config("subagents: {max_turns: lots,\n  max_total_per_run: 0}")
    messages = check_subagents()
    assert [(message.id, message.is_serious()) for message in messages] == [("subagents.E001", True)] * 2
    assert str(messages[0].msg).startswith("config.yaml:1:24 subagents.max_turns")


def test_a_refused_file_does_not_keep_workers_from_starting_on_the_last_good_one(write_config: WriteConfig):
    Observer().current()
    write_config("subagents: {max_turns: lots}")
    messages = check_subagents()
    assert [(message.id, message.is_serious()) for message in messages] == [("subagents.W001", False)]


def test_entries_conflicts_and_unknown_names_are_warnings_with_their_place(
    managed: SaveManaged, write_config: WriteConfig
):
    managed("scout", tools=["nope"], model="gone")
    managed("ranger")
    write_config(
        "title: {enabled: true}\nsubagents:\n  custom_agents:\n    ranger: {description: Ranges., system_prompt: Go.}\n"
        "    broken: {}\n  agents: {nobody: {max_turns: 3}}\n"
    )
    messages = found()
    assert {key: len(value) for key, value in messages.items()} == {
        "subagents.W002": 2,
        "subagents.W003": 1,
        "subagents.W004": 1,
        "subagents.W006": 2,
        "subagents.W007": 1,
    }
    assert messages["subagents.W002"][0].startswith("config.yaml:5:5 subagents.custom_agents.broken")
    assert messages["subagents.W004"][0].startswith("managed subagent ranger")
    assert "nobody" in messages["subagents.W007"][0]


def test_checking_changes_nothing(write_config: WriteConfig):
    write_config("subagents: {max_turns: 9}")
    check_subagents()
    assert not ConfigSnapshot.objects.exists()
