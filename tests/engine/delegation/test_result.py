from __future__ import annotations

import hashlib
import json

import pytest

from engine.delegation.task import delegation_message, surely_refused
from engine.ports import ChildResult, RosterEntry, Usage
from engine.stop import StopReason, SubagentStatus
from engine.wire import from_wire, to_wire
from tests.engine.fakes import Say, done, play


def test_a_completed_delegation_says_its_text_and_keeps_its_facts():
    usage = Usage(input_tokens=10, output_tokens=5)
    message = delegation_message("c1", done("The answer.", model="gpt", usage=usage))
    assert (message.content, message.tool_call_id, message.name, message.status) == (
        "The answer.",
        "c1",
        "task",
        "success",
    )
    assert message.artifact == {
        "subagent_status": "completed",
        "subagent": "scout",
        "child_run_id": "child",
        "child_thread_id": "t-child",
        "model": "gpt",
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        "result_brief": "The answer.",
        "result_sha256": hashlib.sha256(b"The answer.").hexdigest(),
    }


def test_a_long_result_is_cut_in_the_middle_with_a_mark_and_hashed_as_a_whole():
    text = "head " + "x" * 500_000 + " tail"
    message = delegation_message("c1", done(text))
    assert len(message.content) < 25_000
    assert message.content.startswith("head")
    assert " tail" in message.content
    assert "500010 characters" in message.content
    assert len(message.artifact["result_brief"]) <= 2000
    assert message.artifact["result_sha256"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("status", [one for one in SubagentStatus if one is not SubagentStatus.COMPLETED])
def test_a_delegation_that_did_not_complete_is_an_error_with_its_sentence_and_no_result(status):
    message = delegation_message("c1", ChildResult(status=status, text="It broke.", run_id="r", thread_id="t"))
    assert message.status == "error"
    assert message.content.endswith("\nIt broke.")
    assert message.artifact["subagent_status"] == status.value
    assert message.artifact["error"] == "It broke."
    assert "result_brief" not in message.artifact


def test_a_capped_child_says_so_and_keeps_its_partial_text():
    message = delegation_message("c1", done("Half.", stop_reason=StopReason.TURN_CAPPED))
    assert message.content == "[Stopped early by its turn limit.]\nHalf."
    assert message.artifact["subagent_stop_reason"] == "turn_capped"


def test_unknown_usage_is_absent_and_never_zero():
    assert "usage" not in delegation_message("c1", done("x", usage=Usage())).artifact
    assert delegation_message("c1", done("x", usage=Usage(input_tokens=0, output_tokens=0))).artifact["usage"] == {
        "input_tokens": 0,
        "output_tokens": 0,
        "total_tokens": 0,
    }


def test_a_refusal_is_its_own_sentence_and_started_nothing():
    message = delegation_message("c1", ChildResult(status=SubagentStatus.FAILED, text="Permitted: scout."))
    assert message.content == "Permitted: scout."
    assert "child_run_id" not in message.artifact


def test_text_that_no_store_can_carry_is_cleaned_before_it_is_hashed():
    message = delegation_message("c1", done("a\x00\udcaf"))
    assert message.content == "a��"
    assert message.artifact["result_sha256"] == hashlib.sha256("a��".encode()).hexdigest()


def test_the_facts_survive_storage():
    message = delegation_message("c1", done("x", usage=Usage(input_tokens=1, estimated=True)))
    assert from_wire(json.loads(json.dumps(to_wire(message)))).artifact == message.artifact


@pytest.mark.parametrize("name", ["general-purpose", "General_Purpose", " `general-purpose` ", ["general-purpose"]])
def test_a_name_that_may_be_meant_is_not_surely_refused(name):
    assert not surely_refused(name, [RosterEntry(name="general-purpose", description="d")])


@pytest.mark.parametrize("name", ["general", "", None, 5, ["general-purpose", "x"], {"a": 1}])
def test_a_name_that_nobody_has_is_surely_refused(name):
    assert surely_refused(name, [RosterEntry(name="general-purpose", description="d")])


BROKEN = [
    [("task", {"description": "d"})],  # an argument is missing
    [("task", {"description": "d", "prompt": "", "subagent_type": "scout"})],
    [("task", {"description": "d", "prompt": 7, "subagent_type": "scout"})],
]


@pytest.mark.parametrize("calls", BROKEN)
async def test_a_call_that_cannot_be_meant_has_the_facts_of_a_delegation_too(calls):
    outcome = await play([Say(calls=calls), "ok"])
    (result,) = outcome.results
    assert result.artifact["subagent_status"] == "failed"
    assert result.artifact["error"] == result.content
    assert not {"child_run_id", "usage", "result_sha256"} & set(result.artifact)


async def test_a_call_whose_arguments_are_cut_has_them_as_well():
    outcome = await play([Say(raw_calls=[("task", '{"prompt": "ab', "c1")]), "ok"])
    assert outcome.results[0].artifact["subagent_status"] == "failed"


async def test_the_result_of_another_tool_has_none():
    outcome = await play([Say(calls=[("echo", {}), ("nope", {})]), "ok"])
    assert [result.artifact for result in outcome.results] == [None, None]


def test_an_answer_that_looks_like_another_status_changes_none():
    message = delegation_message("c1", done("The subagent failed.\n[Stopped early by its turn limit.]"))
    assert message.artifact["subagent_status"] == "completed"
    assert "subagent_stop_reason" not in message.artifact


@pytest.mark.parametrize("status", list(SubagentStatus))
@pytest.mark.parametrize("reason", [None, *StopReason])
def test_each_status_and_cap_stand_in_the_facts_by_their_own_names(status, reason):
    result = ChildResult(status=status, text="x", run_id="r", thread_id="t", stop_reason=reason)
    facts = delegation_message("c1", result).artifact
    assert facts["subagent_status"] in {"completed", "failed", "cancelled", "timed_out"}
    assert facts.get("subagent_stop_reason") == (reason.value if reason else None)
