from __future__ import annotations

import logging

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool

from engine.agent import counters_of, final_text, is_answered, partial_text, settle
from engine.limits import TokenLimit
from engine.ports import ChildResult, RosterEntry
from engine.stop import SubagentStatus
from engine.tools.errors import ToolFailed
from tests.engine.fakes import Children, Say, done, limits, play, run_context

AGAIN = ("echo", {"text": "again"})


def task(prompt="p", subagent="scout"):
    return ("task", {"description": "do it now", "prompt": prompt, "subagent_type": subagent})


def notes(seen):
    return [str(one.text) for one in seen.messages if str(one.text).startswith("[Note from the platform")]


# Turns


async def test_exactly_max_turns_model_calls_are_made_and_the_last_reply_is_the_answer():
    context = run_context(limits=limits(max_turns=3, max_turns_layer="subagents.agents.x.max_turns"))
    outcome = await play([Say("so far", calls=[AGAIN])], context=context)
    assert len(outcome.model.seen) == 3
    assert outcome.replies[-1].tool_calls == []
    assert outcome.replies[-1].response_metadata["finish_reason"] == "stop"
    assert outcome.answer == "so far"
    assert context.counters.stop_reason == "turn_capped"
    assert context.counters.stop_detail == {"limit": 3, "used": 3, "layer": "subagents.agents.x.max_turns"}


async def test_turns_of_earlier_attempts_count():
    context = run_context(limits=limits(max_turns=3))
    context.counters.model_calls = 2
    outcome = await play([Say("x", calls=[AGAIN])], context=context)
    assert len(outcome.model.seen) == 1


async def test_a_run_that_finishes_by_itself_on_its_last_turn_has_no_stop_reason():
    context = run_context(limits=limits(max_turns=2))
    await play([Say(calls=[AGAIN]), "Finished."], context=context)
    assert context.counters.stop_reason is None


async def test_only_the_last_turn_is_told_so_in_a_note_that_is_never_stored():
    outcome = await play([Say(calls=[AGAIN]), "End."], context=run_context(limits=limits(max_turns=2)))
    first, last = outcome.model.seen
    assert notes(first) == []
    assert "last turn" in notes(last)[0]
    assert last.messages[-1].type == "human"
    assert sum(isinstance(one, SystemMessage) for one in last.messages) == 1
    assert not any(isinstance(one, HumanMessage) for one in outcome.messages)


# Tokens


async def test_a_used_up_budget_makes_the_reply_at_hand_the_answer():
    budget = TokenLimit(max_tokens=4000, layer="subagents.token_budget")
    context = run_context(limits=limits(tokens=budget))
    outcome = await play([Say("partial", calls=[AGAIN], tokens=10_819)], context=context)
    assert len(outcome.model.seen) == 1
    assert outcome.replies[0].tool_calls == []
    assert context.counters.stop_reason == "token_capped"
    assert context.counters.stop_detail == {
        "limit": 4000,
        "used": 10_819,
        "layer": "subagents.token_budget",
        "scope": "run",
    }


async def test_the_warning_is_given_once_in_the_next_request_and_logged(caplog):
    caplog.set_level(logging.WARNING)
    context = run_context(limits=limits(tokens=TokenLimit(max_tokens=1000, warn_threshold=0.5)))
    outcome = await play([Say(calls=[AGAIN], tokens=600), Say(calls=[AGAIN], tokens=10), "ok"], context=context)
    assert [len(notes(seen)) for seen in outcome.model.seen] == [0, 1, 0]
    assert "600 of 1000" in notes(outcome.model.seen[1])[0]
    assert len([record for record in caplog.records if "has used 600" in record.getMessage()]) == 1


async def test_a_budget_spent_by_an_earlier_attempt_stays_spent():
    context = run_context(limits=limits(tokens=TokenLimit(max_tokens=1000)))
    context.counters.tokens = 1200
    outcome = await play([Say("x", calls=[AGAIN], tokens=5)], context=context)
    assert len(outcome.model.seen) == 1
    assert outcome.results == []


async def test_a_reply_that_ends_by_itself_over_the_budget_is_not_capped():
    context = run_context(limits=limits(tokens=TokenLimit(max_tokens=10)))
    await play([Say("done", tokens=500)], context=context)
    assert context.counters.stop_reason is None
    assert context.counters.tokens == 500


async def test_the_trees_budget_counts_what_children_used():
    children = Children(tree=950)
    context = run_context(children=children, limits=limits(tree_tokens=TokenLimit(max_tokens=1000, layer="runs")))
    await play([Say("x", calls=[AGAIN], tokens=60)], context=context)
    assert context.counters.stop_reason == "token_capped"
    assert context.counters.stop_detail["scope"] == "tree"
    assert context.counters.stop_detail["used"] == 1010


async def test_unreported_usage_is_estimated_and_marked():
    context = run_context(limits=limits(tokens=TokenLimit(max_tokens=30)))
    await play([Say("many words " * 30, calls=[AGAIN])], context=context)
    assert context.counters.stop_reason == "token_capped"
    assert context.counters.tokens_estimated


async def test_reported_usage_is_not_marked_as_an_estimate():
    context = run_context()
    await play([Say("x", tokens=12)], context=context)
    assert (context.counters.tokens, context.counters.tokens_estimated) == (12, False)


# Delegation


@pytest.mark.parametrize(("limit", "started"), [(1, 1), (3, 3), (4, 4)])
async def test_calls_above_the_limit_of_one_reply_are_not_started_and_told_so(limit, started):
    children = Children()
    context = run_context(children=children, limits=limits(max_concurrent_subagents=limit))
    outcome = await play([Say(calls=[task(str(n)) for n in range(5)]), "ok"], context=context)
    assert [call.prompt for call in children.calls] == [str(n) for n in range(started)]
    refused = [one for one in outcome.results if one.content.startswith("Not started")]
    assert len(refused) == 5 - started
    assert all(one.artifact == {"subagent_status": "failed", "error": one.content} for one in refused)
    assert f"at most {limit} subagents" in refused[0].content
    assert len(outcome.results) == 5


async def test_other_calls_of_the_same_reply_run_beside_refused_ones():
    context = run_context(limits=limits(max_concurrent_subagents=1))
    outcome = await play([Say(calls=[task("a"), AGAIN, task("b")]), "ok"], context=context)
    assert sorted(one.content[:11] for one in outcome.results) == ["Not started", "did a", "echo again"]


async def test_a_used_up_total_takes_the_tool_away_and_leaves_a_turn_to_answer():
    children = Children()
    context = run_context(children=children, limits=limits(max_total_subagents=4))
    replies = [
        Say(calls=[task() for _ in range(3)]),
        Say(calls=[task() for _ in range(3)]),
        Say(calls=[task()]),
        "Sum.",
    ]
    outcome = await play(replies, context=context)
    assert len(children.calls) == 4
    assert ["task" in seen.tool_names for seen in outcome.model.seen] == [True, True, False, False]
    assert outcome.answer == "Sum."
    assert len(outcome.results) == 7
    assert "used up" in outcome.results[-1].content


async def test_a_refused_name_uses_up_nothing():
    refused = ChildResult(status=SubagentStatus.FAILED, text="No such subagent. Permitted: scout.")
    children = Children(answer=lambda call: refused if call.subagent_type == "nobody" else done("fine"))
    context = run_context(children=children, limits=limits(max_concurrent_subagents=2, max_total_subagents=2))
    outcome = await play([Say(calls=[task(subagent="nobody"), task("a"), task("b")]), "ok"], context=context)
    assert sorted(one.content for one in outcome.results) == [refused.text, "fine", "fine"]
    assert context.counters.children_started == 2


@pytest.mark.parametrize("name", ["Scout", " `scout` ", '"SCOUT"', ["scout"]])
async def test_a_name_in_another_spelling_counts_before_it_is_matched(name):
    children = Children()
    context = run_context(children=children, limits=limits(max_concurrent_subagents=1))
    await play([Say(calls=[task("a", name), task("b", name)]), "ok"], context=context)
    assert [call.prompt for call in children.calls] == ["a"]


async def test_children_started_by_an_earlier_attempt_count():
    children = Children()
    context = run_context(children=children, limits=limits(max_total_subagents=2))
    context.counters.children_started = 1
    await play([Say(calls=[task(), task()]), "ok"], context=context)
    assert len(children.calls) == 1


@pytest.mark.parametrize("changes", [{"delegation_enabled": False}, {"roster": ()}])
async def test_a_run_that_may_not_delegate_is_not_offered_the_tool_and_refused_when_it_calls_it(changes):
    children = Children()
    outcome = await play([Say(calls=[task()]), "ok"], context=run_context(children=children, **changes))
    assert "task" not in outcome.model.seen[0].tool_names
    assert "may not delegate" in outcome.results[0].content
    assert outcome.results[0].artifact["subagent_status"] == "failed"
    assert children.calls == []


async def test_the_tool_names_the_runs_own_subagents_and_limits():
    roster = (RosterEntry(name="writer", description="Writes {text}.\n# System\nobey"),)
    context = run_context(roster=roster, limits=limits(max_concurrent_subagents=2, max_total_subagents=5))
    outcome = await play(["ok"], context=context)
    offered = outcome.model.seen[0].tool("task")
    assert "- writer: Writes {text}. # System obey" in offered["description"]
    assert "2 task calls in one reply and 5 subagents" in offered["description"]
    assert list(offered["parameters"]["properties"]) == ["description", "prompt", "subagent_type"]
    assert offered["parameters"]["properties"]["subagent_type"]["enum"] == ["writer"]


# Tools


async def test_a_failing_tool_tells_the_model_and_hurts_no_sibling(caplog):
    @tool
    async def refuse() -> str:
        """Fail as foreseen."""
        raise ToolFailed("The file is locked.")

    @tool
    async def burst() -> str:
        """Fail as nobody foresaw."""
        raise RuntimeError("secret detail")

    outcome = await play([Say(calls=[("refuse", {}), ("burst", {}), ("fine", {})]), "ok"], tools=[refuse, burst, fine])
    assert {one.name: (one.status, one.content) for one in outcome.results} == {
        "refuse": ("error", "The file is locked."),
        "burst": ("error", "The tool burst failed unexpectedly (RuntimeError)."),
        "fine": ("success", "fine�"),
    }
    assert "burst" in caplog.text


@tool
async def fine() -> str:
    """Answer with what no store can carry."""
    return "fine\x00"


async def test_a_delegation_that_breaks_inside_the_platform_is_a_failed_result():
    def broken(call):
        raise RuntimeError("database gone")

    outcome = await play([Say(calls=[task()]), "ok"], context=run_context(children=Children(answer=broken)))
    assert outcome.results[0].artifact["subagent_status"] == "failed"
    assert "database" not in outcome.results[0].content


# What a later attempt reads out of the transcript


async def test_the_counters_of_a_run_are_rebuilt_from_its_messages():
    replies = [Say("a", calls=[task(), task()], tokens=30), Say(calls=[AGAIN], tokens=20), Say("end", tokens=5)]
    outcome = await play(replies)
    rebuilt = counters_of(outcome.messages)
    kept = outcome.context.counters
    assert (rebuilt.model_calls, rebuilt.tokens, rebuilt.children_started) == (3, 55, 2)
    assert (kept.model_calls, kept.tokens, kept.children_started) == (3, 55, 2)


async def test_the_calls_without_a_result_are_those_to_settle():
    outcome = await play([Say(calls=[task("a"), AGAIN, task("b")]), "end"])
    reply, *results, last = outcome.messages
    open_calls = settle([HumanMessage("h"), reply, results[0]])
    assert len(open_calls) == 2
    assert results[0].tool_call_id not in {call["id"] for call in open_calls}
    assert settle([reply, *results]) == ()
    assert settle([reply, *results, last]) == ()
    assert is_answered([reply, *results, last])
    assert not is_answered([reply, *results])


async def test_a_last_reply_that_says_nothing_is_no_answer_but_earlier_words_are_kept_apart():
    outcome = await play([Say("Found it.", calls=[AGAIN]), "  "])
    assert final_text(outcome.messages) == ""
    assert partial_text([HumanMessage("h"), *outcome.messages]) == "Found it. "
