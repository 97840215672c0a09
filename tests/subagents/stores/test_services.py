from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from subagents import registry, services
from subagents.definitions import Source
from subagents.errors import InvalidDefinition, NameTaken, NotFound, ReadOnly, StaleVersion
from subagents.kinds import AGENT, SUBAGENT, Kind
from tests.subagents.stores.changing import TESTER, both_kinds, document, history, make

if TYPE_CHECKING:
    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("write_config")]

SCOUT_IN_CONFIG = "subagents: {custom_agents: {scout: {description: Finds things., system_prompt: Look.}}}"


# --- Names ----------------------------------------------------------------------------------------------------
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


@both_kinds
def test_two_spellings_of_a_name_are_one_name(write_config: WriteConfig, kind: Kind[Any]):
    make(kind, "Writer")
    with pytest.raises(NameTaken) as taken:
        make(kind, "writer ")
    assert taken.value.source is Source.MANAGED


@pytest.mark.parametrize("name", ["lead-agent", "lead_agent", " Lead-Agent"])
def test_a_custom_agent_may_not_be_called_like_the_default_lead(write_config: WriteConfig, name: str):
    with pytest.raises(InvalidDefinition) as refused:
        make(AGENT, name)
    assert refused.value.faults == (("name", "this name is reserved for the default lead"),)


def test_a_custom_agent_and_a_subagent_may_share_a_name(write_config: WriteConfig):
    assert make(AGENT, "scout").name == make(SUBAGENT, "scout").name == "scout"


# --- Changes --------------------------------------------------------------------------------------------------
@both_kinds
def test_an_update_changes_only_what_was_sent(write_config: WriteConfig, kind: Kind[Any]):
    made = make(kind, display_name="Späher", tools=["bash"], skills=[])
    stored = services.update(kind, "scout", {"tools": []}, expected_version=made.version, actor=TESTER)
    assert (stored.display_name, stored.tools, stored.skills) == ("Späher", (), ())
    assert stored.version != made.version
    stored = services.update(kind, "scout", {"tools": None}, expected_version=stored.version, actor=TESTER)
    assert stored.tools is None


@both_kinds
def test_a_replacement_sets_everything_that_is_left_out_back_to_its_default(write_config: WriteConfig, kind: Kind[Any]):
    made = make(kind, display_name="Späher", tools=["bash"])
    stored = services.replace(kind, "scout", document(), expected_version=made.version, actor=TESTER)
    assert (stored.display_name, stored.tools) == ("", None)


@both_kinds
def test_a_name_cannot_be_changed(write_config: WriteConfig, kind: Kind[Any]):
    made = make(kind)
    for change in (services.update, services.replace):
        with pytest.raises(InvalidDefinition) as refused:
            change(kind, "scout", document("ranger"), expected_version=made.version, actor=TESTER)
        assert [fault.path for fault in refused.value.faults] == ["name"]
    assert services.update(kind, "scout", {"name": "Scout"}, expected_version=made.version, actor=TESTER) == made


@both_kinds
def test_a_stale_save_is_refused_and_says_what_has_changed_since(write_config: WriteConfig, kind: Kind[Any]):
    made = make(kind)
    now = services.update(
        kind, "scout", {"display_name": "S", "enabled": False}, expected_version=made.version, actor=TESTER
    )
    for change in (services.update, services.replace):
        with pytest.raises(StaleVersion) as stale:
            change(kind, "scout", document(), expected_version=made.version, actor=TESTER)
        assert stale.value.current == now.version
        assert stale.value.changes == {"display_name": ("", "S"), "enabled": (True, False)}
    with pytest.raises(StaleVersion):
        services.delete(kind, "scout", expected_version=made.version, actor=TESTER)
    assert history(kind) == ["changed", "created"]


@both_kinds
def test_saving_what_is_there_already_is_no_change(write_config: WriteConfig, kind: Kind[Any]):
    made = make(kind)
    assert services.update(kind, "scout", {"enabled": True}, expected_version=made.version, actor=TESTER) == made
    assert history(kind) == ["created"]


def test_a_shadowed_definition_may_still_be_edited(managed: SaveManaged, write_config: WriteConfig):
    scout = managed("scout")
    write_config(SCOUT_IN_CONFIG)
    stored = services.update(SUBAGENT, "scout", {"max_turns": 9}, expected_version=scout.version, actor=TESTER)
    assert stored.max_turns == 9


@both_kinds
@pytest.mark.parametrize(
    ("field", "value"),
    [("system_prompt", ""), ("tools", "bash"), ("colour", "red"), ("description", "a\x00b"), ("model", "\ud800")],
)
def test_an_invalid_document_is_refused_with_the_field(
    write_config: WriteConfig, kind: Kind[Any], field: str, value: object
):
    made = make(kind)
    calls = [
        lambda: services.create(kind, document("ranger", **{field: value}), actor=TESTER),
        lambda: services.update(kind, "scout", {field: value}, expected_version=made.version, actor=TESTER),
    ]
    for call in calls:
        with pytest.raises(InvalidDefinition) as refused:
            call()
        assert {fault.path for fault in refused.value.faults} == {field}


@both_kinds
def test_what_is_not_there_is_not_found(write_config: WriteConfig, kind: Kind[Any]):
    with pytest.raises(NotFound):
        services.update(kind, "nobody", {"enabled": False}, expected_version="1", actor=TESTER)
    with pytest.raises(NotFound):
        services.delete(kind, "nobody", expected_version="1", actor=TESTER)


def test_built_in_and_configured_entries_are_read_only(write_config: WriteConfig):
    write_config(SCOUT_IN_CONFIG)
    for name, source in [("bash", Source.BUILTIN), ("scout", Source.CONFIG)]:
        with pytest.raises(ReadOnly) as refused:
            services.update(SUBAGENT, name, {"enabled": False}, expected_version="1", actor=TESTER)
        assert refused.value.source is source
        with pytest.raises(ReadOnly):
            services.delete(SUBAGENT, name, expected_version="1", actor=TESTER)


@both_kinds
def test_what_is_deleted_is_gone_at_once_and_keeps_its_history(write_config: WriteConfig, kind: Kind[Any]):
    made = make(kind)
    services.delete(kind, "scout", expected_version=made.version, actor=TESTER)
    assert "scout" not in registry.current().catalogue.runnable
    assert registry.current().agents == ()
    with pytest.raises(NotFound):
        services.delete(kind, "scout", expected_version=made.version, actor=TESTER)
    make(kind)
    assert history(kind) == ["created", "deleted", "created"]


def test_a_form_opened_on_a_deleted_definition_does_not_save_over_its_successor(write_config: WriteConfig):
    old = make(SUBAGENT)
    services.delete(SUBAGENT, "scout", expected_version=old.version, actor=TESTER)
    new = make(SUBAGENT, display_name="Another")
    assert new.version != old.version
    with pytest.raises(StaleVersion):
        services.update(SUBAGENT, "scout", {"enabled": False}, expected_version=old.version, actor=TESTER)


@both_kinds
def test_many_are_switched_with_one_entry_each_and_every_outcome_is_told(write_config: WriteConfig, kind: Kind[Any]):
    make(kind, "scout")
    make(kind, "ranger", enabled=False)
    outcome = services.set_enabled(kind, ["scout", "ranger", "nobody", "scout"], False, actor=TESTER)
    assert {name: result if isinstance(result, str) else type(result) for name, result in outcome.items()} == {
        "scout": "changed",
        "ranger": "unchanged",
        "nobody": NotFound,
    }
    assert history(kind, "scout") == ["disabled", "created"]
    assert history(kind, "ranger") == ["created"]


def test_switching_a_built_in_one_is_refused(write_config: WriteConfig):
    outcome = services.set_enabled(SUBAGENT, ["bash"], False, actor=TESTER)
    assert isinstance(outcome["bash"], ReadOnly)


# --- Copies and who names whom ---------------------------------------------------------------------------------
def entry(name: str) -> Any:
    return registry.current().catalogue.holder(name)


def as_run(name: str) -> dict[str, Any]:
    effective = entry(name).effective
    budget = effective.budget
    return {
        **{field.name: getattr(effective, field.name) for field in fields(effective)},
        "budget": (budget.enabled, budget.max_tokens, budget.warn_threshold),
    }


def test_a_copy_runs_like_the_original_and_goes_on_following_what_holds_for_all(write_config: WriteConfig):
    write_config(
        "subagents: {token_budget: {max_tokens: 9000},"
        " agents: {bash: {timeout_seconds: 300, token_budget: {warn_threshold: 0.5}}}}"
    )
    for name in ("bash", "general-purpose"):
        written = services.document_of(entry(name))
        copy = services.create(SUBAGENT, written, actor=TESTER)
        original, made = as_run(name), as_run(copy.name)
        assert made == original
    assert copy.name == "general-purpose-copy"
    write_config("subagents: {timeout_seconds: 77}")
    assert entry("general-purpose-copy").effective.timeout_seconds == 77


def test_a_copy_gets_a_name_that_is_free(managed: SaveManaged):
    managed("bash-copy")
    assert services.document_of(entry("bash"))["name"] == "bash-copy-2"


def test_a_custom_agent_can_be_copied_as_well(write_config: WriteConfig):
    make(AGENT, "boss", allowed_subagents=[])
    [boss] = registry.current().agents
    assert services.document_of(boss) == {**AGENT.to_plain(boss.agent), "name": "boss-copy"}


def test_the_custom_agents_that_name_a_subagent_are_told(write_config: WriteConfig):
    make(AGENT, "boss", allowed_subagents=["scout", "ranger"])
    make(AGENT, "chief", allowed_subagents=["ranger"])
    make(AGENT, "everybody")
    assert [agent.name for agent in services.named_by("scout")] == ["boss"]
    assert [agent.name for agent in services.named_by("ranger")] == ["boss", "chief"]
