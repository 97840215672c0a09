from __future__ import annotations

import orjson
import pytest

from runs.transcript import from_json, last_answer, readable, text_of


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": ""}, {"type": "text", "text": "**Done**"}], "**Done**"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes."}], "Yes."),
        (["a", {"type": "text", "text": "b"}, {"type": "text"}, 5, None], "ab"),
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": 5}], ""),
    ],
)
def test_the_words_of_a_message_are_all_its_text_blocks_together(content: object, text: str):
    assert text_of({"type": "ai", "content": content}) == text


def test_an_answer_is_the_last_reply_that_says_something():
    messages = [
        {"type": "human", "content": "Go."},
        {"type": "ai", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "**Done**"}]},
        {"type": "ai", "content": "  "},
        {"type": "tool", "content": "ignored"},
    ]
    assert last_answer(messages) == "**Done**"


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud83d"}', '{"a\\uDC00": NaN}', '{"a": [Infinity]}', '{"a": "\\ud83c\\udf78"}']
)
def test_a_row_from_elsewhere_becomes_one_that_every_reader_takes(text: str):
    assert orjson.loads(readable(text)) == from_json(text)


def test_a_row_of_ours_is_handed_on_as_it_is():
    for text in ('{"a": "é \\u0007"}', '{"words": "x"}'):
        assert readable(text) is text
    assert orjson.loads(readable('{"words": "NaN and \\\\ud83d"}')) == {"words": "NaN and \\ud83d"}
