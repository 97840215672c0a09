from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from engine.agent import counters_of
from engine.limits import LoopLimit, limits_from_json
from engine.loops import LoopKind, LoopTracker, key_of_set
from engine.middleware.history_repair import repair
from engine.stop import StopReason
from tests.engine.fakes import Children, Say, limits, play, run_context
from tests.engine.middleware.test_limits import notes, task

AGAIN = ("echo", {"text": "again"})
LOOPS = LoopLimit()


def looping(**changes):
    return run_context(limits=limits(max_turns=200, loops=LoopLimit(**changes)))


def other(number):
    return ("echo", {"text": f"number {number}"})


# Identical sets of calls


async def test_an_endless_identical_loop_ends_after_six_model_calls_with_the_answer_of_the_last():
    replies = [Say(calls=[AGAIN]) for _ in range(5)]
    outcome = await play([*replies, Say("What I have.", calls=[AGAIN])], context=looping())
    assert len(outcome.model.seen) == 6
    assert outcome.answer == "What I have."
    assert outcome.replies[-1].tool_calls == []
    assert [one.content for one in outcome.results[:4]] == ["echo again"] * 4
    assert outcome.results[4].content.startswith("Not run")
    counters = outcome.context.counters
    assert counters.stop_reason is StopReason.LOOP_CAPPED
    assert counters.stop_detail == {
        "limit": 5,
        "used": 5,
        "layer": "loop_detection.hard_limit",
        "tool": "echo",
        "kind": "identical",
    }


async def test_the_warning_comes_once_in_the_request_after_the_third_repetition_and_is_never_stored():
    outcome = await play([*[Say(calls=[AGAIN])] * 4, "Done."], context=looping())
    assert [len(notes(seen)) for seen in outcome.model.seen] == [0, 0, 0, 1, 0]
    warned = outcome.model.seen[3].messages
    assert "same tool call (echo) 3 times" in notes(outcome.model.seen[3])[0]
    assert isinstance(warned[-1], HumanMessage)
    assert isinstance(warned[-2], ToolMessage)  # never between a call and its result
    assert sum(isinstance(one, SystemMessage) for one in warned) == 1
    assert not any(isinstance(one, HumanMessage) for one in outcome.messages)
    assert outcome.context.counters.stop_reason is None


async def test_a_run_that_stops_repeating_itself_after_the_warning_goes_on():
    outcome = await play([*[Say(calls=[AGAIN])] * 4, Say(calls=[other(1)]), "Done."], context=looping())
    assert outcome.context.counters.stop_reason is None
    assert outcome.answer == "Done."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([("a", {"x": 1}), ("b", {})], [("b", {}), ("a", {"x": 1})]),
        ([("bash", {"command": "ls", "description": "Look"})], [("bash", {"command": "ls", "description": "Again"})]),
        ([("a", {"x": 1, "y": 2})], [("a", json.dumps({"y": 2, "x": 1}))]),
        (
            [("read_file", {"path": "f", "start_line": 1, "end_line": 90})],
            [("read_file", {"path": "f", "start_line": 2, "end_line": 3})],
        ),
        (
            [("read_file", {"path": "f", "start_line": 400, "end_line": 10})],
            [("read_file", {"path": "f", "start_line": 10, "end_line": 400})],
        ),
    ],
)
def test_what_does_the_same_is_the_same_set(first, second):
    assert key_of_set(first) == key_of_set(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([("a", {})], [("b", {})]),
        ([("a", {})], [("a", {}), ("a", {})]),
        ([("grep", {"path": ".", "pattern": "x"})], [("grep", {"path": ".", "pattern": "y"})]),
        ([("glob", {"path": ".", "glob": "*.md"})], [("glob", {"path": ".", "glob": "*.py"})]),
        ([("write_file", {"path": "f", "content": "x"})], [("write_file", {"path": "f", "content": "y"})]),
        ([("read_file", {"path": "f", "start_line": 1})], [("read_file", {"path": "f", "start_line": 900})]),
        ([("task", {"prompt": "P1"})], [("task", {"prompt": "P2"})]),
    ],
)
def test_what_does_something_else_is_another_set(first, second):
    assert key_of_set(first) != key_of_set(second)


@pytest.mark.parametrize("arguments", [None, "", "{", 7, [1], {"x": {1, 2}}, {"start_line": float("nan")}, "[" * 9999])
def test_arguments_of_any_shape_have_a_stable_key(arguments):
    for tool in ("read_file", "bash", "x"):
        assert key_of_set([(tool, arguments)]) == key_of_set([(tool, arguments)])


def test_repetitions_that_leave_the_window_are_forgotten_and_may_be_warned_of_again():
    tracker, limit = LoopTracker(), LoopLimit(window_size=5)
    assert [bool(tracker.note([AGAIN], limit)) for _ in range(4)] == [False, False, True, False]
    for number in range(5):
        assert tracker.note([other(number)], limit) == []
    assert [bool(tracker.note([AGAIN], limit)) for _ in range(3)] == [False, False, True]


async def test_calls_that_are_refused_or_fail_count_as_repetitions():
    outcome = await play([Say(calls=[("nope", {"id": 1})])], context=looping())
    assert len(outcome.model.seen) == 6
    assert outcome.context.counters.stop_reason is StopReason.LOOP_CAPPED


async def test_calls_that_never_parse_end_by_the_loop_limit():
    outcome = await play([Say(raw_calls=[("echo", '{"text": "abc', "c")])], context=looping())
    assert len(outcome.model.seen) == 6
    assert outcome.context.counters.stop_reason is StopReason.LOOP_CAPPED


async def test_a_subagent_that_calls_task_again_and_again_is_ended():
    context = run_context(is_subagent=True, roster=(), delegation_enabled=False, limits=limits(loops=LOOPS))
    outcome = await play([Say("x", calls=[task()])], context=context)
    assert context.counters.stop_reason is StopReason.LOOP_CAPPED
    assert "not available to subagents" in outcome.results[0].content


async def test_delegations_of_the_reply_that_reaches_the_limit_are_not_started():
    children = Children()
    context = run_context(
        children=children, limits=limits(max_total_subagents=50, loops=LoopLimit(warn_threshold=1, hard_limit=2))
    )
    await play([Say("Had enough.", calls=[task("same")])], context=context)
    assert len(children.calls) == 1
    assert context.counters.children_started == 1


# One tool with any arguments


async def test_one_tool_with_any_arguments_is_warned_of_at_thirty_and_stopped_at_fifty():
    outcome = await play([Say("So far.", calls=[other(number)]) for number in range(60)], context=looping())
    assert len(outcome.model.seen) == 51
    assert [number for number, seen in enumerate(outcome.model.seen) if notes(seen)] == [30, 50]
    assert "called echo 30 times" in notes(outcome.model.seen[30])[0]
    counters = outcome.context.counters
    assert (counters.stop_reason, counters.stop_detail["kind"]) == (StopReason.LOOP_CAPPED, "frequent")
    assert counters.stop_detail["layer"] == "loop_detection.tool_freq_hard_limit"
    assert outcome.answer == "So far."


def test_forty_different_calls_are_warned_of_and_never_stopped():
    tracker = LoopTracker()
    found = [one for number in range(40) for one in tracker.note([("bash", {"command": f"echo {number}"})], LOOPS)]
    assert [(one.kind, one.count, one.stops) for one in found] == [(LoopKind.FREQUENT, 30, False)]


def test_the_limit_of_a_tool_can_be_set_by_itself():
    limit = LoopLimit(tool_freq_overrides={"read_file": (100, 200), "bash": (2, 3)})
    tracker = LoopTracker()
    found = [tracker.note([("read_file", {"path": str(number)})], limit) for number in range(199)]
    assert [number + 1 for number, one in enumerate(found) if one] == [100]
    (stopped,) = tracker.note([("read_file", {"path": "last"})], limit)
    assert (stopped.stops, stopped.layer) == (True, "loop_detection.tool_freq_overrides.read_file.hard_limit")
    assert [bool(tracker.note([("bash", {"command": str(n)})], limit)) for n in range(3)] == [False, True, True]


def test_counts_decay_when_other_tools_are_called_between():
    tracker = LoopTracker()
    for number in range(300):
        for tool in ("read_file", "write_file", "grep"):
            assert tracker.note([(tool, {"path": str(number), "content": str(number)})], LOOPS) == []


def test_both_rules_are_evaluated_for_the_same_reply():
    limit = LoopLimit(tool_freq_warn=3, tool_freq_hard_limit=9)
    tracker = LoopTracker()
    found = [tracker.note([AGAIN], limit) for _ in range(3)][-1]
    assert {one.kind for one in found} == {LoopKind.IDENTICAL, LoopKind.FREQUENT}
    assert Counter(tracker._calls)["echo"] == 3


def test_every_call_of_a_reply_counts():
    tracker = LoopTracker()
    (found,) = tracker.note([other(number) for number in range(30)], LOOPS)
    assert (found.kind, found.count) == (LoopKind.FREQUENT, 30)


# Off, attributed, kept


async def test_switched_off_it_never_ends_a_run():
    outcome = await play([Say(calls=[AGAIN])], context=run_context(limits=limits(max_turns=30)))
    assert outcome.context.counters.stop_reason is StopReason.TURN_CAPPED


async def test_the_log_says_who_looped_with_which_tool_how_often(caplog):
    caplog.set_level(logging.WARNING)
    context = looping()
    context.agent_name = "writer"
    await play([Say("x", calls=[AGAIN])], context=context)
    told = [record.getMessage() for record in caplog.records if "writer" in record.getMessage()]
    assert len(told) == 2
    assert "echo 3 times (identical), limit 5 by loop_detection.hard_limit" in told[0]
    assert "ended for going round in circles" in told[1]


async def test_another_guard_that_ended_the_run_before_keeps_its_reason():
    context = run_context(limits=limits(max_turns=5, loops=LOOPS))
    await play([Say("x", calls=[AGAIN])], context=context)
    assert context.counters.stop_reason is StopReason.TURN_CAPPED


@pytest.mark.parametrize("made", range(1, 6))
async def test_another_worker_goes_on_with_the_count_and_the_warning(made):
    first = await play([Say("x", calls=[AGAIN])], context=run_context(limits=limits(max_turns=made + 1)))
    stored = [HumanMessage("Go on."), *first.messages[: 2 * made]]
    rule = limits(max_turns=200, loops=LOOPS)
    context = run_context(limits=rule, counters=counters_of(stored[1:], limits=rule))
    second = await play([Say("End.", calls=[AGAIN])], context=context, messages=stored)
    assert made + len(second.model.seen) == 6
    assert context.counters.stop_reason is StopReason.LOOP_CAPPED
    first_notes = notes(second.model.seen[0])
    assert bool(first_notes) == (made in (3, 5))


def test_the_limits_survive_storage():
    rule = limits(loops=LoopLimit(hard_limit=7, tool_freq_overrides={"bash": (1, 2)}))
    assert limits_from_json(json.loads(json.dumps(asdict(rule)))) == rule


def test_limits_that_an_older_version_stored_have_the_guard_off():
    stored = {"max_turns": 5, "timeout_seconds": 9, "tokens": {"max_tokens": 7, "warn_threshold": 0.5, "layer": "x"}}
    assert limits_from_json(stored).loops is None
    assert limits_from_json(stored).tokens.max_tokens == 7


# For any calls whatever

CALLS = st.lists(
    st.tuples(st.sampled_from(["ls", "bash", "read_file"]), st.fixed_dictionaries({"path": st.sampled_from("abc")})),
    max_size=3,
)
LIMITS = st.builds(
    lambda warn, more, window, freq, freq_more: LoopLimit(
        warn_threshold=warn,
        hard_limit=warn + more,
        window_size=warn + more + window,
        tool_freq_warn=freq,
        tool_freq_hard_limit=freq + freq_more,
    ),
    *[st.integers(1, 4)] * 5,
)


@given(st.lists(CALLS, max_size=30), LIMITS, st.randoms())
def test_the_order_of_calls_within_a_reply_changes_nothing(replies, limit, random):
    one, two = LoopTracker(), LoopTracker()
    for calls in replies:
        shuffled = random.sample(calls, len(calls))
        first, second = one.note(calls, limit), two.note(shuffled, limit)
        assert {(r.kind, r.count, r.stops) for r in first} == {(r.kind, r.count, r.stops) for r in second}


@given(st.lists(CALLS, max_size=40), LIMITS)
def test_a_stop_is_said_exactly_when_a_limit_is_reached_within_its_window(replies, limit):
    tracker, sets, flat = LoopTracker(), [], []
    for calls in replies:
        found = tracker.note(calls, limit)
        if not calls:
            assert found == []
            continue
        sets.append(key_of_set(calls))
        flat += sorted(tool for tool, _arguments in calls)
        identical = sets[-limit.window_size :].count(sets[-1])
        frequent = Counter(flat[-limit.frequency_window :])
        assert any(r.stops and r.kind is LoopKind.IDENTICAL for r in found) == (identical >= limit.hard_limit)
        assert {r.tool for r in found if r.stops and r.kind is LoopKind.FREQUENT} == {
            tool for tool in {one for one, _ in calls} if frequent[tool] >= limit.tool_freq_hard_limit
        }


@given(st.lists(CALLS, max_size=12), LIMITS)
def test_a_history_that_was_warned_and_stopped_is_valid_for_every_provider(replies, limit):
    """What the guard leaves behind: each call has one result right behind it, so repairing changes nothing."""
    tracker, history = LoopTracker(), [HumanMessage("h")]
    for number, calls in enumerate(replies):
        made = [{"type": "tool_call", "id": f"c{number}_{n}", "name": t, "args": a} for n, (t, a) in enumerate(calls)]
        history.append(AIMessage("said", tool_calls=made))
        history += [ToolMessage("r", tool_call_id=call["id"], name=call["name"]) for call in made]
        if any(one.stops for one in tracker.note(calls, limit)):
            break
    assert repair(history) == history
