"""Names, budgets and variables: the pure rules beside the reader."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.budget import BudgetLayer, effective_budget
from engine.config.expand import expand, expand_model
from engine.config.names import normalise_name
from engine.config.schema import ModelConfig, TokenBudgetConfig


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("bash", "bash"),
        ("  Bash\t", "bash"),
        ("A-1", "a-1"),
        ("7", "7"),
        ("x" * 64, "x" * 64),
        ("a--b", "a--b"),
        ("\u212a1", "k1"),
    ],
)
def test_a_name_is_known_under_one_spelling(written, name):
    assert normalise_name(written) == name


@pytest.mark.parametrize(
    "written",
    [
        "",
        "  ",
        "-a",
        "a-",
        "-",
        "a b",
        "a_b",
        "a.b",
        "é",
        "e\u0301",
        "研究",
        "a\0",
        "x" * 65,
        "x" * 1_000_000,
        "ａ",
    ],
)
def test_a_name_outside_the_rule_is_refused(written):
    with pytest.raises(ValueError, match=r"^a name "):
        normalise_name(written)


@given(st.text(max_size=80))
def test_normalising_twice_changes_nothing(written):
    try:
        name = normalise_name(written)
    except ValueError:
        return
    assert normalise_name(name) == name


def test_without_any_budget_the_default_follows_the_summarisation_switch():
    plain = effective_budget(None, None, summarization_enabled=False)
    assert (plain.enabled, plain.max_tokens, plain.warn_threshold) == (True, 2_000_000, 0.7)
    assert plain.max_tokens_layer is BudgetLayer.DEFAULT
    assert effective_budget(None, None, summarization_enabled=True).max_tokens == 1_000_000


def test_a_partial_override_inherits_the_rest_and_never_switches_the_guard_off():
    budget = effective_budget(
        TokenBudgetConfig(warn_threshold=0.5), TokenBudgetConfig(max_tokens=300), summarization_enabled=True
    )
    assert (budget.enabled, budget.max_tokens, budget.warn_threshold) == (True, 300, 0.5)
    assert budget.max_tokens_layer is BudgetLayer.OVERRIDE
    assert budget.warn_threshold_layer is BudgetLayer.GLOBAL
    assert budget.enabled_layer is BudgetLayer.DEFAULT


def test_a_budget_that_leaves_the_number_out_keeps_the_coupled_default():
    budget = effective_budget(TokenBudgetConfig(enabled=True), None, summarization_enabled=True)
    assert (budget.max_tokens, budget.max_tokens_layer) == (1_000_000, BudgetLayer.DEFAULT)


budgets = st.none() | st.builds(
    TokenBudgetConfig,
    enabled=st.none() | st.booleans(),
    max_tokens=st.none() | st.integers(1, 10**6),
    warn_threshold=st.none() | st.floats(0.1, 1),
)


@given(st.lists(budgets, min_size=3, max_size=3), st.booleans())
def test_each_field_comes_from_the_strongest_layer_that_names_it(layers, summarization):
    override, definition, everyone = layers
    budget = effective_budget(everyone, override, definition_budget=definition, summarization_enabled=summarization)
    default = {
        "enabled": True,
        "max_tokens": 1_000_000 if summarization else 2_000_000,
        "warn_threshold": 0.7,
    }
    for field, standard in default.items():
        values = [getattr(layer, field, None) for layer in layers]
        expected = next((value for value in values if value is not None), standard)
        assert getattr(budget, field) == expected


@given(st.integers(1, 10**6), st.booleans())
def test_a_number_somebody_wrote_does_not_depend_on_summarisation(max_tokens, summarization):
    written = TokenBudgetConfig(max_tokens=max_tokens)
    for layers in itertools.permutations((written, None)):
        assert effective_budget(*layers, summarization_enabled=summarization).max_tokens == max_tokens


@pytest.mark.parametrize(
    ("written", "value", "missing"),
    [
        ("$KEY", "k-1", ()),
        ("${KEY}", "k-1", ()),
        ("Bearer ${KEY}x$KEY", "Bearer k-1xk-1", ()),
        ("$$KEY costs $5 and $", "$KEY costs $5 and $", ()),
        ("$NONE-${NOR_THIS}-$NONE", "--", ("NONE", "NOR_THIS")),
        ("$EMPTY", "", ("EMPTY",)),
        ("$NESTED", "$KEY", ()),
        ("${KEY", "${KEY", ()),
        ("${}", "${}", ()),
        ("$BYTES", "", ("BYTES",)),
        (5, 5, ()),
        (None, None, ()),
        (["$KEY", {"$KEY": ["${KEY}", 1]}], ["k-1", {"$KEY": ["k-1", 1]}], ()),
    ],
)
def test_variables_are_replaced_once_and_missing_ones_are_named(written, value, missing):
    environ = {"KEY": "k-1", "EMPTY": "", "NESTED": "$KEY", "BYTES": "a\udcff"}
    expanded = expand(written, environ)
    assert (expanded.value, expanded.missing) == (value, missing)


def test_only_the_fields_that_say_so_are_expanded_in_a_model():
    model = ModelConfig(
        name="$KEY",
        use="x.y:Z",
        display_name="$KEY",
        api_key="$KEY",
        base_url="http://$HOST/",
        organization="${KEY}",
    )
    expanded, missing = expand_model(model, {"KEY": "k"})
    assert missing == ("HOST",)
    assert (expanded.name, expanded.display_name, expanded.api_key) == ("$KEY", "$KEY", "k")
    assert expanded.extra == {"organization": "k"}
    assert model.api_key == "$KEY"
