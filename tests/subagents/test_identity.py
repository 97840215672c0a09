"""One name, one subagent: however it is spelled, wherever it comes from, whatever a machine would make of it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from subagents import registry, services
from subagents.catalogue import State
from subagents.definitions import Source
from subagents.errors import InvalidDefinition, NameTaken
from subagents.kinds import SUBAGENT
from subagents.validation import validate_definition

if TYPE_CHECKING:
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db


def named(name: object, **fields: object) -> dict[str, object]:
    return {"name": name, "description": "Does things.", "system_prompt": "Do it.", **fields}


@pytest.mark.parametrize(
    ("first", "second"),
    list(itertools.permutations(["writer", "Writer", " WRITER\n", "writer\u00a0"], 2)),
)
def test_two_spellings_of_one_name_are_one_name(managed: SaveManaged, first: str, second: str):
    assert managed(first).name == "writer"
    with pytest.raises(NameTaken):
        managed(second)


@pytest.mark.parametrize("spelling", ["Writer", "writer", '" WRITER "'])
def test_a_name_that_the_file_spells_otherwise_is_shown_as_a_conflict(
    managed: SaveManaged, write_config: WriteConfig, spelling: str
):
    managed("writer")
    write_config(f"subagents: {{custom_agents: {{{spelling}: {{description: Writes., system_prompt: Write.}}}}}}")
    now = registry.current()
    assert now.catalogue.runnable["writer"].source is Source.CONFIG
    (conflict,) = now.catalogue.conflicts
    assert (conflict.source, conflict.name, conflict.state) == (Source.MANAGED, "writer", State.SHADOWED)


@pytest.mark.parametrize(
    "name",
    [
        "caf\u00e9",
        "cafe\u0301",
        "stra\u00dfe",
        "wri\u200bter",  # a space of no width
        "\ufeffwriter",
        "\u0432riter",  # begins with a Cyrillic letter
        "\ud83e\udd8a fox",
        "\U0001f98a",
        "a" * 300,
        "\u202egnp",  # turns the direction of writing
        "a/b",
        "..",
        ".",
        "../writer",
        "nul.txt",
        "a.",
        "a\x07",
        "a\\b",
        "writer\x00",
        "-rf",
    ],
)
def test_a_name_that_could_be_taken_for_another_or_for_a_path_is_refused_with_its_field(name: str):
    with pytest.raises(InvalidDefinition) as refused:
        validate_definition(named(name))
    assert {fault.path for fault in refused.value.faults} == {"name"}
    for fault in refused.value.faults:
        assert fault.sentence.encode("utf-8")
        assert len(fault.sentence) < 120


def test_letters_that_only_look_different_in_size_are_one_name(managed: SaveManaged):
    assert managed("STRASSE").name == "strasse"
    assert managed("\u212aelvin").name == "kelvin"  # the sign for kelvins
    with pytest.raises(NameTaken):
        managed("kelvin")


@pytest.mark.parametrize("name", ["con", "nul", "prn", "aux", "com1", "lpt9", "index", "null"])
def test_a_name_that_other_systems_reserve_comes_back_as_it_was_stored(managed: SaveManaged, name: str):
    stored = managed(name)
    assert registry.store(SUBAGENT).get(name) == stored
    assert name in registry.current().catalogue.runnable
    services.delete(SUBAGENT, name, expected_version=stored.version, actor=services.Actor())
    assert name not in registry.current().catalogue.runnable


@pytest.mark.parametrize(
    "label",
    ["\U0001f98a fox", "Café Übung", "数据 工程师", "\u05d0\u05d1\u05d2", "\u202egnp", "a/b", "Data  Engineer "],
)
def test_a_label_is_kept_as_it_was_typed(managed: SaveManaged, label: str):
    stored = managed("fox", display_name=label)
    assert stored.display_name == label
    assert registry.store(SUBAGENT).get("fox").title == label
