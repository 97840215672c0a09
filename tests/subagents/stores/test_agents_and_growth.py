"""Custom agents in the registry, and what a look costs however many definitions there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from subagents import registry, services
from subagents.catalogue import State
from subagents.errors import UnknownAgent
from subagents.kinds import AGENT, SUBAGENT
from subagents.scope import NOBODY
from subagents.stores.folder import Folder
from tests.subagents.stores.changing import TESTER, change_outside, make

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.subagents.conftest import WriteConfig

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("write_config")]

SCOUT_IN_CONFIG = "subagents: {custom_agents: {scout: {description: Finds things., system_prompt: Look.}}}"


# --- Custom agents ------------------------------------------------------------------------------------------------
def test_an_enabled_custom_agent_is_a_lead_with_its_scope():
    make(AGENT, "boss", display_name="The boss", tools=["read_file"], allowed_subagents=[], model="gpt")
    lead = registry.lead("boss")
    assert (lead.name, lead.display_name, lead.tools, lead.model, lead.scope) == (
        "boss",
        "The boss",
        ("read_file",),
        "gpt",
        NOBODY,
    )
    assert lead.version is not None


def test_a_switched_off_a_broken_and_a_deleted_agent_is_no_lead_from_the_same_moment(backend: str, tmp_path: Path):
    made = make(AGENT, "scout")
    assert registry.lead("scout")
    made = services.update(AGENT, "scout", {"enabled": False}, expected_version=made.version, actor=TESTER)
    for change in (
        lambda: None,
        lambda: change_outside(AGENT, backend, tmp_path, tools="bash", enabled=True),
        lambda: services.delete(
            AGENT, "scout", expected_version=registry.store(AGENT).find("scout").version, actor=TESTER
        ),
    ):
        change()
        with pytest.raises(UnknownAgent):
            registry.lead("scout")


def test_a_scope_gives_what_runs_and_keeps_what_does_not(write_config: WriteConfig):
    make(SUBAGENT, "scout")
    make(SUBAGENT, "ranger", enabled=False)
    make(AGENT, "boss", allowed_subagents=["bash", "gone", "ranger", "scout"])
    make(AGENT, "everybody")
    make(AGENT, "nobody", allowed_subagents=[])
    boss, everybody, nobody = registry.current().agents
    assert (boss.resolved, boss.missing) == (("bash", "scout"), ("gone",))
    assert [(each.code, each.facts["name"]) for each in boss.warnings] == [
        ("missing_subagent", "gone"),
        ("idle_subagent", "ranger"),
    ]
    assert set(everybody.resolved) == {"bash", "general-purpose", "scout"}
    assert (nobody.resolved, nobody.warnings) == ((), ())
    assert boss.agent.allowed_subagents == ("bash", "gone", "ranger", "scout")
    services.create(SUBAGENT, {"name": "gone", "description": "x", "system_prompt": "y"}, actor=TESTER)
    assert registry.current().agents[0].resolved == ("bash", "gone", "scout")


def test_a_name_selected_in_another_spelling_is_the_same_name():
    make(AGENT, "boss", allowed_subagents=[" Scout", "scout"])
    assert registry.current().agents[0].agent.scope.names == ("scout",)


def test_a_switched_off_agent_says_so():
    make(AGENT, "boss", enabled=False)
    [boss] = registry.current().agents
    assert (boss.state, boss.runnable, str(boss.reason)) == (
        State.DISABLED,
        False,
        "Switched off. Nobody can talk to it.",
    )


def test_a_conflict_with_the_file_appears_and_heals_by_itself(write_config: WriteConfig):
    made = make(SUBAGENT, "scout")
    write_config(SCOUT_IN_CONFIG)
    config, managed = (entry for entry in registry.current().catalogue.entries if entry.name == "scout")
    assert (config.source.value, config.runnable) == ("config", True)
    assert (managed.source.value, managed.state, managed.definition) == ("managed", State.SHADOWED, made)
    assert registry.current().catalogue.conflicts == (managed,)
    write_config("")
    assert registry.current().catalogue.runnable["scout"].definition == made


# --- What a look costs ----------------------------------------------------------------------------------------------
def cost(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> tuple[int, int]:
    """Return the queries and the file reads of some work."""
    reads: list[str] = []
    really = Folder.read

    def counted(self: Folder, name: str, most: int) -> Any:
        reads.append(name)
        return really(self, name, most)

    with monkeypatch.context() as counting, CaptureQueriesContext(connection) as queries:
        counting.setattr(Folder, "read", counted)
        work()
    return len(queries), len(reads)


def test_dispatches_cost_the_same_however_many_definitions_there_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("subagents.stores.file._UNSETTLED_SECONDS", float("-inf"))  # as with files older than that

    def prompt_and_three_calls() -> None:
        tuple(registry.current().catalogue.runnable)
        for _call in range(3):
            assert registry.resolve_dispatch("scout", allowed=["scout"])

    costs = []
    make(SUBAGENT, "scout")
    for number in range(2):
        registry.current()
        costs.append(cost(monkeypatch, prompt_and_three_calls))
        for each in range(100):
            make(SUBAGENT, f"scout-{number}-{each}")
    registry.current()
    costs.append(cost(monkeypatch, prompt_and_three_calls))
    assert costs[0] == costs[1] == costs[2]
    assert costs[0][1] == 0


def test_creating_one_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("subagents.stores.file._UNSETTLED_SECONDS", float("-inf"))
    make(SUBAGENT, "first-look")  # which keeps the configuration
    first = cost(monkeypatch, lambda: make(SUBAGENT, "scout"))
    for number in range(50):
        make(SUBAGENT, f"scout-{number}")
    assert cost(monkeypatch, lambda: make(SUBAGENT, "ranger")) == first
