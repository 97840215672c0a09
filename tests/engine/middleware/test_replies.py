from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from engine.agent import TextDelta
from engine.errors import StreamCut
from engine.middleware.call_ids import unique_ids
from engine.middleware.malformed_calls import cleaned
from engine.middleware.model_stream import parse_arguments
from engine.wire import to_wire
from tests.engine.fakes import Say, echo, play, run_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RUN = {"text": "ran"}


async def test_arguments_that_were_cut_off_are_not_repaired_in_silence_but_answered():
    outcome = await play([Say(raw_calls=[("echo", '{"text": "abc', "c1")]), "Sorry."])
    assert outcome.replies[0].tool_calls == [{"type": "tool_call", "name": "echo", "args": {}, "id": "c1"}]
    assert outcome.replies[0].invalid_tool_calls == []
    assert "not valid JSON" in outcome.results[0].content
    assert '{"text": "abc' in outcome.results[0].content
    assert outcome.answer == "Sorry."


async def test_the_refusal_of_a_malformed_call_is_stored_together_with_its_reply():
    outcome = await play([Say(raw_calls=[("echo", "{", "c1")]), "ok"])
    assert [message.type for message in outcome.steps[0]] == ["ai", "tool"]


async def test_a_sound_call_beside_a_malformed_one_still_runs():
    raw = [("echo", '{"text": "good"}', "c1"), ("echo", "[1]", "c2")]
    outcome = await play([Say(raw_calls=raw), "ok"])
    assert {one.tool_call_id: one.status for one in outcome.results} == {"c1": "success", "c2": "error"}
    assert "expected a JSON object" in next(one.content for one in outcome.results if one.tool_call_id == "c2")


@pytest.mark.parametrize("text", ["", None, "null", " ", "{}"])
def test_no_arguments_at_all_are_empty_arguments(text):
    assert parse_arguments(text) == ({}, "")


def test_an_escaped_surrogate_pair_is_one_character():
    assert parse_arguments('{"p": "\\ud83c\\udf78"}')[0] == {"p": "\U0001f378"}


async def test_arguments_nested_without_end_are_refused_and_crash_nothing():
    outcome = await play([Say(raw_calls=[("echo", '{"text":' + "[" * 100_000, "c1")]), "ok"])
    assert outcome.results[0].status == "error"
    assert outcome.answer == "ok"


@pytest.mark.parametrize("ids", [("", ""), (None, None), ("same", "same"), ("old", "fresh")])
async def test_missing_and_repeated_call_ids_become_unique_in_the_transcript(ids):
    before = [
        HumanMessage("h"),
        AIMessage("", tool_calls=[{"type": "tool_call", "id": "old", "name": "echo", "args": RUN}]),
        ToolMessage("x", tool_call_id="old"),
        HumanMessage("again"),
    ]
    raw = [("echo", '{"text": "one"}', ids[0]), ("echo", '{"text": "two"}', ids[1])]
    outcome = await play([Say(raw_calls=raw), "ok"], messages=before)
    call_ids = [call["id"] for call in outcome.replies[0].tool_calls]
    assert len({*call_ids, "old"}) == 3
    assert {one.tool_call_id: one.content for one in outcome.results} == dict(
        zip(call_ids, ["echo one", "echo two"], strict=True)
    )


async def test_a_malformed_call_that_repeats_an_id_gets_the_result_of_its_new_one():
    outcome = await play([Say(raw_calls=[("echo", '{"text": "a"}', "c"), ("echo", "{", "c")]), "ok"])
    assert {one.tool_call_id for one in outcome.results} == {one["id"] for one in outcome.replies[0].tool_calls}
    assert len(outcome.results) == 2


async def test_a_call_cut_by_the_output_limit_is_not_run_and_is_told_why():
    raw = [("echo", '{"text": "whole"}', "c1"), ("echo", "{}", "c2")]
    outcome = await play([Say(raw_calls=raw, finish_reason="length"), "ok"])
    answers = {one.tool_call_id: one.content for one in outcome.results}
    assert answers["c1"] == "echo whole"
    assert "output limit" in answers["c2"]


async def test_text_that_no_store_can_carry_is_cleaned_in_pieces_and_reply():
    outcome = await play(["nul \x00 half \udcaf end"])
    assert outcome.answer == "nul � half � end"
    pieces = "".join(one.text for one in outcome.yielded if isinstance(one, TextDelta))
    assert pieces.strip() == outcome.answer


async def test_arguments_reach_the_tool_clean():
    outcome = await play([Say(calls=[("echo", {"text": "a\x00b"})]), "ok"])
    assert outcome.results[0].content == "echo a�b"


def test_an_endless_reply_is_bounded_with_a_mark():
    assert len(cleaned(AIMessage("x" * 3_000_000)).text) == 1_000_000


def test_a_sound_reply_is_left_as_it_is():
    reply = AIMessage("t", tool_calls=[{"type": "tool_call", "id": "a", "name": "echo", "args": RUN}])
    assert cleaned(reply) is reply
    assert unique_ids(reply, [HumanMessage("h")]) is reply


async def test_an_unknown_tool_is_answered_with_the_names_there_are():
    outcome = await play([Say(calls=[("nope", {})]), "ok"])
    assert 'no tool "nope"' in outcome.results[0].content
    assert "echo" in outcome.results[0].content


async def test_a_subagent_that_calls_task_is_told_that_it_may_not():
    outcome = await play([Say(calls=[("task", {})]), "ok"], context=run_context(is_subagent=True))
    assert "not available to subagents" in outcome.results[0].content


async def test_an_agent_without_any_tool_survives_a_call_to_one():
    outcome = await play([Say(calls=[("echo", RUN)]), "ok"], tools=[], context=run_context(is_subagent=True))
    assert "Available tools: none" in outcome.results[0].content
    assert outcome.answer == "ok"


async def test_wrong_arguments_are_named_with_the_arguments_there_are():
    outcome = await play([Say(calls=[("echo", {"foo": 1}), ("echo", {"text": 7})]), "ok"])
    by_call = {one.tool_call_id: one.content for one in outcome.results}
    missing, wrong = (by_call[call["id"]] for call in outcome.replies[0].tool_calls)
    assert "text is missing" in missing
    assert "The arguments of echo are: text." in missing
    assert "text: Input should be a valid string" in wrong
    assert "Traceback" not in missing + wrong


async def test_a_reply_without_a_single_piece_is_a_cut_stream():

    from engine.agent import build, drive
    from tests.engine.fakes import ScriptedChat

    class Silent(ScriptedChat):
        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            for nothing in ():
                yield nothing

    with pytest.raises(StreamCut):
        async for _ in drive(build(Silent(), [echo], is_subagent=True), [HumanMessage("h")], run_context()):
            pass


@tool(response_format="content_and_artifact")
async def odd_values(text: str) -> tuple[str, dict[str, Any]]:
    """Answer what no store can carry, as text and beside it."""
    return f"{text}\x00 \ud83d", {"key\x00": ["value\x00"], "rate": float("nan"), "fine": 1.5}


@tool
async def odd_object(text: str) -> dict[str, Any]:
    """Answer an object, which becomes text on its way to the model."""
    return {text: "a\x00b", "half": "\ud83d", "rate": float("nan")}


async def test_a_result_that_no_store_can_carry_is_cleaned_and_what_was_replaced_is_counted():
    calls = [("odd_values", {"text": "a"}), ("odd_object", {"text": "b"})]
    outcome = await play([Say(calls=calls), "ok"], tools=(odd_values, odd_object))
    values, written = (to_wire(result) for result in outcome.results)
    for wire in (values, written):
        stored = json.dumps(wire, allow_nan=False, ensure_ascii=False)
        assert "\x00" not in stored
        stored.encode("utf-8")
    assert values["content"] == "a\ufffd \ufffd"
    assert values["artifact"] == {"key\ufffd": ["value\ufffd"], "rate": None, "fine": 1.5}
    assert values["additional_kwargs"] == {"replaced_characters": 5}
    assert written["additional_kwargs"] == {"replaced_characters": 1}
    assert outcome.answer == "ok"


async def test_a_sound_result_says_nothing_of_replacements():
    outcome = await play([Say(calls=[("echo", {"text": r"\u0000"})]), "ok"])
    assert outcome.results[0].content == r"echo \u0000"
    assert "additional_kwargs" not in to_wire(outcome.results[0])


@tool
async def flood(text: str) -> str:
    """Answer more than any model can read."""
    return text + "x" * 2_000_000 + " end"


async def test_a_result_of_any_tool_is_cut_before_it_enters_the_history():
    outcome = await play([Say(calls=[("flood", {"text": "begin "})]), "ok"], tools=(flood,))
    (result,) = outcome.results
    assert len(result.content) <= 200_000
    assert result.content.startswith("begin ")
    assert result.content.endswith(" end")
    assert result.content.count("characters cut") == 1
    assert outcome.model.seen[-1].messages[-1].content == result.content
