from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.reader import read_config
from engine.config.schema import TokenBudgetConfig
from engine.tools.names import DELEGATION_TOOLS
from subagents.builtins import BUILTINS
from subagents.definitions import Source
from subagents.layers import Layer, overridden_fields, resolve
from tests.subagents.making import builtin, configured, definition, from_config

GENERAL_PURPOSE, BASH = BUILTINS


def test_out_of_the_box_the_built_ins_have_150_and_60_turns_and_half_an_hour():
    limits = [resolve(each, configured())[0] for each in BUILTINS]
    assert [(each.max_turns, each.timeout_seconds) for each in limits] == [(150, 1800), (60, 1800)]


def test_other_subagents_have_50_turns_and_half_an_hour_unless_somebody_says_so():
    effective, layers = resolve(definition("scout"), configured())
    assert (effective.max_turns, effective.timeout_seconds) == (50, 1800)
    assert layers["max_turns"] == (Layer("default", 50),)


def test_a_managed_name_that_a_built_in_has_elsewhere_does_not_inherit_the_built_ins_turns():
    assert resolve(definition("bash"), configured())[0].max_turns == 50


def test_each_layer_of_a_limit_is_listed_strongest_first():
    config = configured("subagents: {max_turns: 120, agents: {scout: {max_turns: 80}}}")
    effective, layers = resolve(from_config("scout", max_turns=60), config)
    assert effective.max_turns == 80
    assert layers["max_turns"] == (
        Layer("subagents.agents.scout.max_turns", 80),
        Layer("subagents.custom_agents.scout.max_turns", 60),
        Layer("subagents.max_turns", 120),
        Layer("default", 50),
    )


def test_a_global_limit_beats_the_default_of_a_built_in_and_yields_to_what_a_definition_says():
    config = configured("subagents: {max_turns: 120, timeout_seconds: 600}")
    assert resolve(GENERAL_PURPOSE, config)[0].max_turns == 120
    said = resolve(definition("scout", max_turns=7, timeout_seconds=9), config)[0]
    assert (said.max_turns, said.timeout_seconds) == (7, 9)


def test_a_global_timeout_that_nobody_wrote_is_called_a_default():
    assert resolve(BASH, configured())[1]["timeout_seconds"] == (Layer("default", 1800),)
    written = resolve(BASH, configured("subagents: {timeout_seconds: 1800}"))[1]["timeout_seconds"]
    assert written[0].name == "subagents.timeout_seconds"


@pytest.mark.parametrize("field", ["max_turns", "timeout_seconds", "model", "skills", "token_budget"])
def test_null_in_an_override_changes_nothing(field: str):
    config = configured(f"subagents: {{agents: {{scout: {{{field}: null}}}}}}")
    scout = definition("scout", max_turns=7, timeout_seconds=9, model="gpt", skills=("a",))
    assert resolve(scout, config) == resolve(scout, configured())


def test_an_empty_skill_list_in_an_override_takes_every_skill_away():
    config = configured("subagents: {agents: {scout: {skills: []}}}")
    effective, layers = resolve(definition("scout", skills=("a",)), config)
    assert effective.skills == ()
    assert overridden_fields(layers) == ("skills",)


def test_null_and_empty_tool_lists_stay_two_different_things():
    assert resolve(definition("scout", tools=None), configured())[0].tools is None
    assert resolve(definition("scout", tools=()), configured())[0].tools == ()


def test_delegation_tools_are_denied_whatever_the_definition_says():
    assert resolve(definition("scout"), configured())[0].disallowed_tools == DELEGATION_TOOLS
    denied = resolve(from_config("scout", disallowed_tools=("bash", "task")), configured())[0].disallowed_tools
    assert set(denied) == {*DELEGATION_TOOLS, "bash"}
    assert len(denied) == len(set(denied))


def test_a_budget_that_names_only_its_size_leaves_the_guard_on_and_the_warning_where_it_was():
    config = configured(
        "subagents: {token_budget: {warn_threshold: 0.5}, agents: {scout: {token_budget: {max_tokens: 9000}}}}"
    )
    effective, layers = resolve(definition("scout", token_budget=TokenBudgetConfig(max_tokens=7000)), config)
    budget = effective.budget
    assert (budget.enabled, budget.max_tokens, budget.warn_threshold) == (True, 9000, 0.5)
    assert [layer.name for layer in layers["token_budget.max_tokens"]] == [
        "subagents.agents.scout.token_budget.max_tokens",
        "managed",
        "default",
    ]
    assert layers["token_budget.warn_threshold"][0].name == "subagents.token_budget.warn_threshold"


def test_summarisation_halves_the_default_budget_and_no_written_one():
    summarising = configured("summarization: {enabled: true}")
    assert resolve(definition("scout"), summarising)[0].budget.max_tokens == 1_000_000
    assert resolve(definition("scout"), configured())[0].budget.max_tokens == 2_000_000
    written = definition("scout", token_budget=TokenBudgetConfig(max_tokens=1_500_000))
    assert resolve(written, summarising)[0].budget.max_tokens == 1_500_000


numbers = st.none() | st.integers(1, 1000)


@given(override=numbers, said=numbers, everywhere=numbers, source=st.sampled_from(Source))
def test_the_first_layer_that_says_a_limit_wins(
    override: int | None, said: int | None, everywhere: int | None, source: Source
):
    yaml = f"subagents: {{max_turns: {everywhere or 'null'}, agents: {{scout: {{max_turns: {override or 'null'}}}}}}}"
    config = read_config(yaml.encode()).config
    assert config is not None
    effective, layers = resolve(definition("scout", source, max_turns=said), config)
    expected = next(value for value in (override, said, everywhere, 50) if value is not None)
    assert effective.max_turns == layers["max_turns"][0].value == expected
    assert [layer.value for layer in layers["max_turns"]] == [
        value for value in (override, said, everywhere, 50) if value is not None
    ]


@given(st.sampled_from(Source), st.booleans())
def test_the_effective_values_are_those_of_the_winning_layers(source: Source, enabled: bool):
    written = definition("scout", source, enabled=enabled, tools=("ls",), token_budget=TokenBudgetConfig(enabled=False))
    effective, layers = resolve(written, configured("subagents: {agents: {scout: {model: gpt}}}"))
    won = {field: stack[0].value for field, stack in layers.items()}
    for field in ("model", "tools", "disallowed_tools", "skills", "max_turns", "timeout_seconds"):
        assert getattr(effective, field) == won[field]
    for field in ("enabled", "max_tokens", "warn_threshold"):
        assert getattr(effective.budget, field) == won[f"token_budget.{field}"]
    assert won["enabled"] is enabled


def test_resolving_leaves_the_built_in_definition_as_it_is():
    before = builtin("bash", max_turns=60)
    resolve(before, configured("subagents: {agents: {bash: {max_turns: 80}}}"))
    assert before.max_turns == 60
