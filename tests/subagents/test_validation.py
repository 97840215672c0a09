from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.schema import TokenBudgetConfig
from subagents.errors import InvalidDefinition
from subagents.validation import to_plain, validate_definition

PLAIN: dict[str, Any] = {"name": "scout", "description": "Finds things.", "system_prompt": "You look for things."}


def faults(**fields: Any) -> dict[str, str]:
    with pytest.raises(InvalidDefinition) as refused:
        validate_definition(PLAIN | fields)
    return dict(refused.value.faults)


def test_a_name_a_description_and_a_prompt_are_enough():
    scout = validate_definition(PLAIN)
    assert (scout.model, scout.tools, scout.skills, scout.enabled, scout.max_turns) == (
        "inherit",
        None,
        None,
        True,
        None,
    )


def test_a_name_is_normalised():
    assert validate_definition(PLAIN | {"name": "  Scout-2 "}).name == "scout-2"


@pytest.mark.parametrize(
    "name", ["", " ", "-a", "a-", "a b", "a_b", "../a", "é", "a" * 65, None, 7, ["a"], "a\x00", True]
)
def test_other_names_are_refused(name: object):
    assert set(faults(name=name)) == {"name"}


def test_prompts_survive_byte_for_byte():
    prompt = "{{ a }} {% b %} %s %(c)s ${D} {e} <script>&amp;\r\n\t'\"\\ 名 \u202e"
    assert validate_definition(PLAIN | {"system_prompt": prompt}).system_prompt == prompt


def test_every_fault_is_named_at_once_with_its_path():
    found = faults(
        name="No Name",
        description="",
        system_prompt=None,
        max_turns=0,
        timeout_seconds="5m",
        tools="bash",
        skills=[1],
        token_budget={"max_tokens": -1, "extra": 1},
        enabled="yes",
        colour="red",
    )
    assert set(found) == {
        "name",
        "description",
        "system_prompt",
        "max_turns",
        "timeout_seconds",
        "tools",
        "skills[0]",
        "token_budget.max_tokens",
        "token_budget.extra",
        "enabled",
        "colour",
    }
    assert found["timeout_seconds"].endswith('got "5m"')
    assert found["system_prompt"] == "this field is required"
    assert found["tools"] == 'expected a list of names or null, got "bash"'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_turns", 1001),
        ("max_turns", True),
        ("max_turns", 1.5),
        ("max_turns", "007"),
        ("timeout_seconds", 86_401),
        ("timeout_seconds", 10**400),
        ("display_name", "x" * 121),
        ("description", "x" * 2001),
        ("token_budget", []),
        ("system_prompt", "x" * 200_001),
        ("model", ""),
        ("tools", ["x"] * 501),
        ("tools", {"a": 1}),
        ("skills", [None]),
    ],
)
def test_values_out_of_range_or_of_another_type_are_refused(field: str, value: object):
    assert [path.split(".")[0].split("[")[0] for path in faults(**{field: value})] == [field]


def test_quoted_digits_are_integers():
    assert validate_definition(PLAIN | {"max_turns": "80"}).max_turns == 80


@pytest.mark.parametrize("value", ["a\x00b", "a\ud800b"])
@pytest.mark.parametrize("field", ["display_name", "description", "system_prompt", "model"])
def test_what_no_database_can_hold_is_refused(field: str, value: str):
    assert "cannot be stored" in faults(**{field: value})[field]


def test_what_no_database_can_hold_is_found_inside_lists_too():
    assert "cannot be stored" in faults(tools=["a\x00"])["tools"]


def test_null_empty_and_chosen_lists_are_three_things_there_and_back():
    for tools in (None, [], ["ls"]):
        scout = validate_definition(PLAIN | {"tools": tools})
        assert to_plain(scout)["tools"] == tools
        assert validate_definition(to_plain(scout)) == scout


@pytest.mark.parametrize("written", [None, "text", 3, [PLAIN], True])
def test_only_an_object_is_a_definition(written: object):
    with pytest.raises(InvalidDefinition):
        validate_definition(written)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from([*to_plain(validate_definition(PLAIN)), "colour"])


@given(st.dictionaries(fields, json_values))
def test_any_json_gives_a_definition_or_sentences(written: dict[str, Any]):
    try:
        made = validate_definition(PLAIN | written)
    except InvalidDefinition as refused:
        for fault in refused.faults:
            assert fault.sentence.encode("utf-8")
            assert len(fault.sentence) < 500
    else:
        assert validate_definition(to_plain(made)) == made


@pytest.mark.parametrize("field", ["name", "description", "tools", "skills", "token_budget", "colour"])
def test_a_value_nested_a_hundred_thousand_levels_deep_is_a_fault_of_its_field(field: str):
    nested: list[Any] = []
    for _level in range(100_000):
        nested = [nested]
    (path,) = faults(**{field: nested})
    assert path.removesuffix("[0]") == field


def test_a_partial_budget_stays_partial():
    scout = validate_definition(PLAIN | {"token_budget": {"max_tokens": 5000}})
    assert scout.token_budget == TokenBudgetConfig(max_tokens=5000)
    assert to_plain(scout)["token_budget"] == {"max_tokens": 5000}
