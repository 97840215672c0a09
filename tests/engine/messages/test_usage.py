from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from engine.ports import Usage
from engine.usage import estimate_tokens, estimate_usage, sum_usage, usage_of


@pytest.mark.parametrize(
    "metadata",
    [
        {"token_usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        {"usage": {"input_tokens": 7, "output_tokens": 3}},
        {"usage_metadata": {"prompt_token_count": "7", "candidates_token_count": "3"}},
        {"prompt_eval_count": 7, "eval_count": 3},
    ],
)
def test_usage_is_found_under_every_providers_names(metadata):
    assert usage_of(AIMessage("x", response_metadata=metadata)) == Usage(input_tokens=7, output_tokens=3)


@pytest.mark.parametrize("value", [None, True, -1, 1.5, "many", {}, []])
def test_what_is_no_count_is_not_reported_rather_than_zero(value):
    assert usage_of(AIMessage("x", response_metadata={"token_usage": {"prompt_tokens": value}})) is None


def test_no_usage_is_unknown():
    assert usage_of(AIMessage("x")) is None


def test_cached_tokens_are_kept():
    usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10, "input_token_details": {"cache_read": 4}}
    assert usage_of(AIMessage("x", usage_metadata=usage)).cached_tokens == 4


def test_a_sum_leaves_unknown_out_and_is_unknown_only_of_nothing():
    known = Usage(input_tokens=5, output_tokens=None)
    assert sum_usage([None, known, Usage(input_tokens=1, output_tokens=2, estimated=True)]) == Usage(
        input_tokens=6, output_tokens=2, estimated=True
    )
    assert sum_usage([None]) is None
    assert Usage().total_tokens is None


def test_an_estimate_grows_with_the_text_and_counts_chinese_by_the_character():
    assert estimate_tokens("") == 0
    assert estimate_tokens("a" * 400) == 100
    assert estimate_tokens("茶馆文化") == 4
    usage = estimate_usage([HumanMessage("a" * 400)], AIMessage("b" * 40))
    assert usage.estimated
    assert usage.input_tokens > usage.output_tokens > 0
