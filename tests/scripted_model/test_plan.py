"""The planner, driven through a platform in miniature."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from tests.scripted_model import ScriptedModel
from tests.scripted_model.client import chat_openai, streamed

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI


@tool
def write_file(path: str, content: str) -> str:
    """Write a file."""
    return path + content


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return path


@tool
def task(description: str, prompt: str, subagent_type: str) -> str:
    """Delegate."""
    return description + prompt + subagent_type


async def play_the_plan(chat: ChatOpenAI, request: str) -> tuple[AIMessage, list[dict[str, Any]], str]:
    """A platform in miniature: lead, children with one shared folder, files read back.

    Answers the lead's first message, the task calls' arguments and the final answer.
    """
    files: dict[str, str] = {}
    lead = chat.bind_tools([task, read_file])
    subagent = chat.bind_tools([write_file, read_file])
    history: list[Any] = [SystemMessage("You lead."), HumanMessage(request)]
    history.append(first := await lead.ainvoke(history))
    for call in first.tool_calls:
        child: list[Any] = [SystemMessage("You work."), HumanMessage(call["args"]["prompt"])]
        child.append(wrote := await subagent.ainvoke(child))
        arguments = wrote.tool_calls[0]["args"]
        files[arguments["path"]] = arguments["content"]
        child.append(ToolMessage("written", tool_call_id=wrote.tool_calls[0]["id"]))
        history.append(ToolMessage((await subagent.ainvoke(child)).text, tool_call_id=call["id"]))
    history.append(reads := await lead.ainvoke(history))
    history += [ToolMessage(files[c["args"]["path"]], tool_call_id=c["id"]) for c in reads.tool_calls]
    history.append(HumanMessage("<note>One turn is left.</note>"))
    assert len(reads.tool_calls) == 3
    return first, [call["args"] for call in first.tool_calls], (await lead.ainvoke(history)).text


@pytest.mark.parametrize(
    ("request_text", "words"),
    [
        ("Compare SQLite, PostgreSQL and MySQL for a small shop", ["SQLite", "PostgreSQL", "MySQL"]),
        ("Should our bakery open on Sundays?", ["bakery", "Sundays"]),
        ("帮我比较苹果、香蕉和橙子的营养", ["苹果", "香蕉", "橙子"]),
        ("请规划一次上海周末旅行，预算两千元", ["上海周末旅行"]),
    ],
)
async def test_the_planner_delegates_reads_back_and_quotes(request_text: str, words: list[str]) -> None:
    with ScriptedModel(plan=True) as model:
        async with chat_openai(model) as chat:
            first, briefs, answer = await play_the_plan(chat, request_text)
    assert first.text
    assert len({brief["prompt"] for brief in briefs}) == 3
    assert {brief["subagent_type"] for brief in briefs} == {"general-purpose"}
    assert all(word in json.dumps(briefs, ensure_ascii=False) for word in words)
    if request_text.isascii():
        assert all(3 <= len(brief["description"].split()) <= 5 for brief in briefs)
    else:
        assert not any(character.isascii() and character.isalpha() for character in briefs[0]["prompt"])
    assert answer.startswith("## ")
    assert all(f"# {brief['prompt'].splitlines()[0]}" in answer for brief in briefs)


async def test_the_planner_streams_its_two_sentences_in_pieces() -> None:
    with ScriptedModel(plan=True) as model:
        async with chat_openai(model) as chat:
            texts, whole = await streamed(chat.bind_tools([task]), "Plan a garden")
    assert len(texts) > 8
    assert whole.text.count(".") == 2
    assert len(whole.tool_calls) == 3
