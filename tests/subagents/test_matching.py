from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.matching import Refusal, match

PERMITTED = ("general-purpose", "scout")


@pytest.mark.parametrize(
    "written",
    [
        "general-purpose",
        "General-Purpose",
        "  general_purpose\n",
        "`general-purpose`",
        '"general-purpose"',
        "'`general_purpose`'",
        ["general-purpose"],
        ("GENERAL_PURPOSE",),
        '["general-purpose"]',
        "['general_purpose']",
        " [General-Purpose]\n",
        "`['general-purpose']`",
        "“general-purpose”",
    ],
)
def test_small_slips_of_a_model_still_name_the_subagent(written: object):
    assert match(written, PERMITTED) == "general-purpose"


@pytest.mark.parametrize(
    "written",
    [
        "general",
        "",
        None,
        7,
        True,
        {},
        [],
        ["scout", "scout"],
        "['scout', 'general-purpose']",
        '["scout", "scout"]',
        "[[scout]]",
        "[]",
        "sco\u200but",
        [["scout"]],
        [None],
        "scout general-purpose",
        "[",
        "[1]",
        "[" * 5000,
        "x" * 100_000,
        "scout\x00",
        "\ud800",
        "sc out",
    ],
)
def test_anything_else_is_refused_with_the_permitted_names(written: object):
    refusal = match(written, PERMITTED)
    assert isinstance(refusal, Refusal)
    assert "Permitted subagents: general-purpose, scout." in refusal.text
    assert len(refusal.text) < 400
    refusal.text.encode("utf-8")
    assert "\x00" not in refusal.text


def test_with_nobody_permitted_the_refusal_says_so():
    refusal = match("scout", ())
    assert isinstance(refusal, Refusal)
    assert "No subagent is permitted" in refusal.text


@given(st.text() | st.lists(st.text()) | st.none() | st.integers())
def test_whatever_a_model_writes_gives_a_permitted_name_or_a_refusal(written: object):
    meant = match(written, PERMITTED)
    assert isinstance(meant, Refusal) or meant in PERMITTED
