from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text import clean, clean_json, count_replaced, middle_cut, shorten

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def test_nul_and_lone_surrogates_become_the_replacement_character_one_for_one():
    assert clean("a\x00b\udcafc\ud83d") == "a\ufffdb\ufffdc\ufffd"


def test_two_halves_of_one_character_become_that_character():
    assert clean("\ud83c\udf78!") == "\U0001f378!"


def test_text_that_can_be_stored_is_not_touched_and_not_normalised():
    text = "e\u0301 {x} %s \U0001f378 \r\n\t"
    assert clean(text) is text


@given(ANY_TEXT)
def test_cleaned_text_can_always_be_encoded_and_holds_no_nul(text):
    assert b"\x00" not in clean(text).encode()


def test_json_values_are_cleaned_with_their_keys_and_keep_their_shape():
    dirty = {"a\x00": ["\ud800", ("x\x00", 1, None, True)], 2: float("nan"), "inf": float("-inf"), "n": 1.5}
    assert clean_json(dirty) == {
        "a\ufffd": ["\ufffd", ("x\ufffd", 1, None, True)],
        2: None,
        "inf": None,
        "n": 1.5,
    }


def test_what_is_replaced_is_counted_wherever_it_stands():
    dirty = {"a\x00": ["\ud800", ("x\x00", 1, None, True)], 2: float("nan"), "n": 1.5, "kept": "\ufffd \\u0000"}
    assert count_replaced(dirty) == 4
    assert count_replaced("\ud83c\udf78 whole") == count_replaced({"a": ["\ufffd"]}) == 0


def test_the_six_characters_of_an_escape_are_text_like_any_other():
    text = r"\u0000 and \ud800"
    assert clean(text) is text
    assert json.loads(json.dumps(clean_json({"a": text})))["a"] == text


def test_a_value_nested_without_end_is_cut_where_an_encoder_would_give_up():
    value: object = "deep"
    for _ in range(5_000):
        value = [value]
    assert "nested too deeply" in json.dumps(clean_json(value), ensure_ascii=False)


def test_a_shortened_text_says_exactly_how_much_is_missing():
    short = shorten("x" * 1_000, 100)
    kept = short.index("…")
    assert short == "x" * kept + f"… ({1_000 - kept} characters cut)"


def test_a_middle_cut_keeps_both_ends_and_says_exactly_how_much_is_missing():
    cut = middle_cut("a" * 500 + "b" * 500, 100)
    head, tail = cut.count("a", 0, 40), len(cut) - cut.rindex("\n") - 1
    assert cut == "a" * head + f"\n… ({1_000 - head - tail} characters cut) …\n" + "b" * tail
    assert tail > 20


@given(ANY_TEXT, st.integers(0, 80))
@pytest.mark.parametrize("cut", [shorten, middle_cut])
def test_no_cut_is_longer_than_its_limit_and_what_fits_stays_whole(cut, text, limit):
    result = cut(text, limit)
    assert len(result) <= limit
    assert result == text or len(text) > limit


def test_a_negative_limit_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="negative"):
        shorten("abc", -1)
