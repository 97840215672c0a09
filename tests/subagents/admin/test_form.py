from __future__ import annotations

import re
from typing import Any

import pytest
from django.http import QueryDict

from subagents.admin.forms import LONGEST_PROMPT, SubagentForm
from subagents.admin.offered import Offered

OFFERED = Offered(
    tools=("bash", "grep", "ls"), skills=("charts", "sql"), models=("demo", "gpt"), inherited_model="demo"
)
FILLED = {
    "name": "scout",
    "description": "Looks around.",
    "system_prompt": "Look around.",
    "enabled": "on",
    "model": "inherit",
    "tools-choice": "all",
    "skills-choice": "all",
}
STORED: dict[str, Any] = {
    "name": "scout",
    "display_name": "",
    "description": "Looks\r\naround.",
    "system_prompt": "Look\r\naround.\r\n",
    "model": "inherit",
    "tools": ["ls", "web-search", "bash"],
    "disallowed_tools": [],
    "skills": None,
    "max_turns": None,
    "timeout_seconds": None,
    "token_budget": None,
    "enabled": True,
}


def sent(**changes: Any) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, value in (FILLED | changes).items():
        if value is not None:
            data.setlist(name, value if isinstance(value, list) else [value])
    return data


def form(base: dict[str, Any] | None = None, **changes: Any) -> SubagentForm:
    return SubagentForm(sent(**changes), offered=OFFERED, base=base, named=base is not None)


def document(base: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    filled = form(base, **changes)
    assert filled.is_valid(), filled.errors
    return filled.document()


@pytest.mark.parametrize("field", ["tools", "skills"])
@pytest.mark.parametrize(
    ("choice", "names", "value"),
    [("all", [], None), ("all", ["ls"], None), ("none", [], []), ("none", ["ls"], []), ("only", ["ls"], ["ls"])],
)
def test_all_none_and_only_these_are_null_an_empty_list_and_a_list(field, choice, names, value):
    assert document(**{f"{field}-choice": choice, field: names})[field] == value


@pytest.mark.parametrize("value", [None, [], ["ls"], ["gone", "ls"]])
def test_what_the_three_states_show_is_what_they_send_back(value):
    page = str(SubagentForm(offered=OFFERED, base=STORED | {"tools": value}, named=True)["tools"])
    choice = re.findall(r'name="tools-choice" value="(\w+)"[^>]* checked', page)
    ticked = re.findall(r'name="tools" value="([^"]+)" checked', page)
    assert len(choice) == 1
    again = document(STORED | {"tools": value}, **{"tools-choice": choice[0], "tools": ticked})
    assert again["tools"] == value


@pytest.mark.parametrize("choice", [None, "", "bogus"])
def test_a_choice_that_was_not_made_is_an_error_and_never_a_guess(choice):
    assert "tools" in form(**{"tools-choice": choice}).errors


def test_only_these_with_nothing_chosen_is_an_error_that_names_the_way_out():
    assert "say that there shall be none" in str(form(**{"tools-choice": "only"}).errors["tools"])


def test_names_that_do_not_exist_stay_are_flagged_and_can_be_taken_away():
    page = str(SubagentForm(offered=OFFERED, base=STORED, named=True)["tools"])
    assert re.search(r'value="web-search" checked> <code>web-search</code> <span class="sa-badge[^>]*>unknown', page)
    kept = document(STORED, **{"tools-choice": "only", "tools": ["bash", "ls", "web-search"]})
    assert kept["tools"] == STORED["tools"]
    assert document(STORED, **{"tools-choice": "only", "tools": ["bash"]})["tools"] == ["bash"]


def test_nothing_is_called_unknown_while_more_tools_may_exist():
    offered = Offered(tools=("ls",), tools_complete=False)
    page = str(SubagentForm(offered=offered, base=STORED, named=True)["tools"])
    assert 'value="web-search" checked' in page
    assert "sa-badge" not in page


def test_other_names_can_be_typed():
    names = document(**{"tools-choice": "only", "tools": ["ls"], "tools-other": " mcp_search, ls,, x "})["tools"]
    assert names == ["ls", "mcp_search", "x"]


def test_an_untouched_form_changes_nothing_not_even_a_line_end():
    untouched = form(
        STORED,
        description="Looks\r\naround.",
        system_prompt="Look\r\naround.\r\n",
        **{"tools-choice": "only", "tools": ["bash", "ls", "web-search"]},
    )
    assert untouched.is_valid()
    assert untouched.changes() == {}


def test_a_typed_prompt_is_kept_byte_for_byte_with_plain_line_ends():
    text = "  {a} {{ b }} {% c %} %s %(d)s ${E} <b>\r\n\r\n\ttab \\u0000 🦊 研究  \r\n"
    assert document(system_prompt=text)["system_prompt"] == text.replace("\r\n", "\n")


def test_empty_limits_are_null_and_digits_are_numbers():
    empty = document(max_turns="", timeout_seconds="", budget_enabled="", budget_max_tokens="")
    assert (empty["max_turns"], empty["timeout_seconds"], empty["token_budget"]) == (None, None, None)
    filled = document(max_turns="80", budget_max_tokens="5000", budget_enabled="false", budget_warn_threshold="0.5")
    assert filled["max_turns"] == 80
    assert filled["token_budget"] == {"enabled": False, "max_tokens": 5000, "warn_threshold": 0.5}


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("name", "a/b", "a name may hold only the letters"),
        ("name", "n" * 65, "a name has at most 64 characters"),
        ("name", "", "a name must not be empty"),
        ("name", "a\u200bb", "a name may hold only the letters"),
        ("display_name", "d" * 121, "at most 120 characters"),
        ("description", " \n ", "expected text of 1 to 2000 characters"),
        ("system_prompt", "", "expected text of 1 to 200000 characters"),
        ("system_prompt", "p" * (LONGEST_PROMPT + 1), "expected text of at most 200000 characters, not of 200001"),
        ("system_prompt", "a\x00b", "holds a NUL character"),
        ("model", "m" * 301, "expected text of at most 300 characters"),
        ("max_turns", "0", "expected a positive integer up to 1000"),
        ("max_turns", "1001", "expected a positive integer up to 1000"),
        ("max_turns", "30m", "expected a positive integer up to 1000"),
        ("timeout_seconds", "-1", "expected a positive integer up to 86400"),
        ("timeout_seconds", "1e3", "expected a positive integer up to 86400"),
        ("budget_max_tokens", "9" * 30, "expected a positive integer"),
        ("budget_warn_threshold", "0", "expected a number above 0 and up to 1"),
        ("budget_warn_threshold", "nan", "expected a number above 0 and up to 1"),
        ("budget_warn_threshold", "70 %", "expected a number above 0 and up to 1"),
        ("budget_enabled", "maybe", "expected true or false"),
        ("disallowed_tools", ["t" * 301], "expected text of at most 300 characters"),
        ("disallowed_tools", [f"t{number}" for number in range(501)], "expected at most 500 names"),
    ],
)
def test_bad_input_is_an_error_beside_its_field(field, typed, sentence):
    refused = form(**{field: typed})
    assert not refused.is_valid()
    assert list(refused.errors) == [field]
    assert sentence in str(refused.errors[field])


def test_a_name_is_normalised_by_the_rules_of_definitions():
    assert form(name="  Scout ").is_valid()


def test_a_hidden_prompt_is_neither_shown_nor_lost_nor_taken_from_a_forged_field():
    hidden = SubagentForm(sent(system_prompt="forged"), offered=OFFERED, base=STORED, named=True, hides_prompt=True)
    assert hidden.is_valid()
    assert hidden.document()["system_prompt"] == STORED["system_prompt"]
    assert "system_prompt" not in hidden.changes()


def test_a_model_that_is_not_configured_stays_chosen_and_is_flagged():
    page = str(SubagentForm(offered=OFFERED, base=STORED | {"model": "old"}, named=True)["model"])
    assert re.search(r'<option value="old" selected>\s*old \(not configured\)', page)
    assert document(STORED, model="old", **{"tools-choice": "none"})["model"] == "old"


def test_inherit_says_which_model_it_is_now():
    page = str(SubagentForm(offered=OFFERED)["model"])
    assert re.search(r'<option value="inherit" selected>\s*inherit: the lead&#x27;s model, now demo', page) or (
        "inherit: the lead's model, now demo" in page
    )


def test_a_prompt_that_breaks_out_of_its_field_cannot():
    page = str(SubagentForm(offered=OFFERED, base=STORED | {"system_prompt": "</textarea><script>x"})["system_prompt"])
    assert "<script>" not in page
