from __future__ import annotations

import time

import pytest

from subagents.builtins import BUILTINS
from subagents.lint import lint
from subagents.notes import Note


def codes(text: str) -> list[str]:
    return [each.code for each in lint({"scout": text}).get("scout", ())]


@pytest.mark.parametrize("text", ["Research", "Finds things.", "查资料", "x", "...", "Writes\n\n\n\n\n\n\n\n\ntests"])
def test_a_few_words_are_too_short_to_choose_by(text: str):
    assert codes(text) == ["description_short"]


@pytest.mark.parametrize(
    "text",
    [
        "A helpful research assistant.",
        "The senior Python developer",
        "Expert code reviewer, very thorough",
        "Code review specialist. ",
        "An experienced data analyst and writer",
        "一名资深的中英文翻译专家。",
        "你是一个专业的数据分析师",
    ],
)
def test_a_role_does_not_say_what_is_done(text: str):
    assert codes(text) == ["description_no_verb"]


@pytest.mark.parametrize(
    "text",
    [
        "Finds sources on the web and says where each fact comes from.",
        "Use this agent when the user asks for a code review.",
        "Use PROACTIVELY for code review after every change",
        "Reviewing pull requests, one file at a time",
        "Research topics on the web and report sources",
        "Code reviewer. Use it after every change.",
        "A code review agent to use whenever a file was changed",
        "Expert in databases\n\nPick it when a query is slow or a schema has to change.",
        "Write engineer onboarding documents and keep them current",
        "Sucht im Netz nach Quellen und nennt sie.",
        "Agente de búsqueda: busca fuentes en la web",
        "在网上查找资料并注明出处。",
        "当用户要求审查代码时使用，逐个文件给出意见。",
        "翻译中英文技术文档，保留术语表。",
        "负责数据分析的助手，读取表格并给出结论。",
        "コードをレビューし、問題点を報告する専門エージェント",
        "🦊🦊🦊 🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊",
    ],
)
def test_whatever_says_what_is_done_or_when_is_left_alone(text: str):
    assert codes(text) == []


def test_the_built_in_descriptions_are_fine_and_unlike_each_other():
    assert lint({definition.name: definition.description for definition in BUILTINS}) == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Finds sources on the web and says where each fact comes from.",
            "finds sources on the web, and says where each fact comes from",
        ),
        (
            "Finds sources on the web and says where each fact comes from.",
            "Finds good sources on the web and says where each fact comes from.",
        ),
        ("在网上查找资料，并为每一个事实注明出处和日期。", "在网上查找资料，并为每个事实注明出处和日期！"),
    ],
)
def test_two_that_say_nearly_the_same_are_told_of_each_other(one: str, other: str):
    third = "Runs a bounded series of shell commands in the sandbox."
    found = lint({"scout": one, "ranger": other, "third": third})
    assert found == {
        "scout": (Note("description_alike", {"name": "ranger"}),),
        "ranger": (Note("description_alike", {"name": "scout"}),),
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Reviews Python code for security faults.", "Reviews Rust code for performance faults."),
        ("Translates documents from English to Chinese.", "Writes unit tests for changed modules."),
        ("在网上查找资料并注明出处。", "把技术文档翻译成英文并保留术语。"),
    ],
)
def test_two_that_do_different_things_are_not(one: str, other: str):
    assert lint({"a": one, "b": other}) == {}


@pytest.mark.parametrize(
    "text",
    ["Does the work of number {0} and reports what it found.", "Number{0} " + "finds{0} word{0} after{0} word. " * 40],
    ids=["one template", "long and all different"],
)
def test_a_thousand_descriptions_cost_little(text: str):
    many = {f"s{number}": text.format(number) for number in range(1000)}
    started = time.process_time()
    lint(many)
    assert time.process_time() - started < 2.0  # comparing all with all takes a minute


def test_a_thousand_equal_ones_are_all_found():
    same = "Finds sources on the web and says where each fact comes from."
    assert len(lint({f"s{number}": same for number in range(1000)})) == 1000
