from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from subagents.checks import check_subagents
from subagents.kinds import AGENT, SUBAGENT
from subagents.models import ConfigSnapshot
from subagents.registry import Observer
from subagents.services import Actor, create
from subagents.stores.database import MODELS

if TYPE_CHECKING:
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db(transaction=True)

TESTER = Actor(label="test")


def found() -> dict[str, list[str]]:
    by_id: dict[str, list[str]] = {}
    for message in check_subagents():
        by_id.setdefault(str(message.id), []).append(str(message.msg))
    return by_id


def test_a_sound_installation_has_nothing_to_report(managed: SaveManaged):
    managed("scout", description="Finds sources on the web and names them.")
    create(AGENT, {"name": "boss", "system_prompt": "Lead.", "allowed_subagents": ["scout"]}, actor=TESTER)
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
        "subagents.I001": 2,  # two short descriptions
    }
    assert messages["subagents.W002"][0].startswith("config.yaml:5:5 subagents.custom_agents.broken")
    assert messages["subagents.W004"][0].startswith("managed subagent ranger")
    assert "nobody" in messages["subagents.W007"][0]


def test_custom_agents_with_names_that_lead_nowhere_are_warned_about(managed: SaveManaged):
    managed("idle", description="Finds sources on the web and names them.", enabled=False)
    create(
        AGENT,
        {
            "name": "boss",
            "system_prompt": "Lead.",
            "tools": ["nope", "read_file"],
            "skills": ["none-such"],
            "model": "gone",
            "allowed_subagents": ["idle", "nobody"],
        },
        actor=TESTER,
    )
    messages = found()
    assert set(messages) == {"subagents.W006"}
    assert [message.partition(": ")[0] for message in messages["subagents.W006"]] == ["custom agent boss"] * 6
    said = " ".join(messages["subagents.W006"])
    for words in (
        "tool named “nope”",
        "skill named “none-such”",
        "model named “gone”",
        "named “nobody”",
        "“idle” does not",
    ):
        assert words in said
    assert "None of the selected subagents runs" in said


def test_broken_rows_of_either_kind_are_warned_about(managed: SaveManaged):
    managed("scout", description="Finds sources on the web and names them.")
    create(AGENT, {"name": "boss", "system_prompt": "Lead."}, actor=TESTER)
    for kind in (SUBAGENT, AGENT):
        MODELS[kind.name]._default_manager.update(tools="bash", version=2)
    assert [message.partition(": ")[0] for message in found()["subagents.W005"]] == [
        "managed subagent scout",
        "custom agent boss",
    ]


def test_checking_changes_nothing(write_config: WriteConfig):
    write_config("subagents: {max_turns: 9}")
    check_subagents()
    assert not ConfigSnapshot.objects.exists()
