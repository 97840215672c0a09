from __future__ import annotations

import pytest

from runs.errors import BadInput
from runs.options import clean_options

NUMBERS = ("max_concurrent_subagents", "max_total_subagents")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [True, 2.0, 2.5, "two", "", "-1", [3], {"n": 3}, "9" * 12, float("nan")])
def test_a_number_of_the_wrong_type_is_refused_with_its_path(name, value):
    with pytest.raises(BadInput) as refusal:
        clean_options({name: value})
    assert refusal.value.field == f"options.{name}"


@pytest.mark.parametrize("value", ["true", 1, 0, [], {}, "yes"])
def test_a_switch_of_the_wrong_type_is_refused_with_its_path(value):
    with pytest.raises(BadInput) as refusal:
        clean_options({"subagent_enabled": value}, path="context")
    assert refusal.value.field == "context.subagent_enabled"


@pytest.mark.parametrize("name", ["model_name", "agent_name"])
@pytest.mark.parametrize("value", [7, True, "", "   ", [], ["gpt"], {"a": 1}, "x" * 121])
def test_a_name_of_the_wrong_type_is_refused_with_its_path(name, value):
    with pytest.raises(BadInput) as refusal:
        clean_options({name: value})
    assert refusal.value.field == f"options.{name}"


@pytest.mark.parametrize("value", [["subagent_enabled"], "subagent_enabled", 5])
def test_options_that_are_no_object_are_refused_with_their_path(value):
    with pytest.raises(BadInput) as refusal:
        clean_options(value, path="config.configurable")
    assert refusal.value.field == "config.configurable"


def test_a_refusal_stays_short_whatever_was_sent():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    for value in (deep, "x" * 1_000_000, "\ud800\x00"):
        with pytest.raises(BadInput) as refusal:
            clean_options({"max_total_subagents": value})
        assert len(str(refusal.value)) < 200
        str(refusal.value).encode()


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(("asked", "given"), [(0, 1), (-7, 1), (51, 50), (10_000, 50)])
def test_a_number_out_of_range_is_clamped_and_the_clamp_is_told(name, asked, given):
    assert clean_options({name: asked}) == ({name: given}, {name: [asked, given]})


def test_a_number_no_reader_could_take_is_told_as_the_largest_that_all_can():
    _cleaned, clamped = clean_options({"max_total_subagents": 10**40})
    assert clamped == {"max_total_subagents": [2**53, 50]}


def test_whole_numbers_may_be_written_as_quoted_digits():
    assert clean_options({"max_total_subagents": " 7 "}) == ({"max_total_subagents": 7}, {})


def test_what_belongs_to_the_server_and_what_nobody_knows_is_ignored():
    sent = {"owner": 1, "allowed_subagents": ["bash"], "max_concurrent_limit": 99, "metadata": {}, "recursion": 5}
    assert clean_options(sent) == ({}, {})


def test_an_option_that_is_null_counts_as_not_sent():
    assert clean_options(dict.fromkeys(("subagent_enabled", *NUMBERS, "model_name", "agent_name"))) == ({}, {})


def test_a_name_is_kept_storable_and_without_the_space_around_it():
    assert clean_options({"model_name": " g\x00pt "}) == ({"model_name": "g\ufffdpt"}, {})
