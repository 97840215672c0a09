from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from engine.agent import Summary, build, drive
from engine.compaction import compacted, cut_at, ledger
from engine.limits import Extent, SummaryRule
from engine.middleware.history_repair import repair
from engine.middleware.names import PLATFORM_NOTE
from engine.middleware.summarization import SummaryWriter
from engine.models.gate import ModelGate
from engine.wire import summary_from_wire, summary_to_wire
from tests.engine.fakes import Outcome, Say, ScriptedChat, echo, limits, play, run_context

RULE = SummaryRule(trigger=Extent(messages=10), keep=Extent(messages=4))
ASKED = HumanMessage("Write the report on {x}.", id="asked")


def is_summary_request(seen):
    return str(seen.messages[0].text).startswith("You shorten the record")


def work(number):
    return Say(f"step {number}", calls=[("echo", {"text": str(number)})], tokens=100)


def scripted(*, summaries=("SUMMARY",), turns=30):
    """A model that works `turns` steps and then answers; what it is asked for as a summary is `summaries`."""
    made, steps = [], []

    def reply(messages):
        if str(messages[0].text).startswith("You shorten the record"):
            made.append(messages)
            answer = summaries[min(len(made), len(summaries)) - 1]
            if isinstance(answer, Exception):
                raise answer
            return Say(answer, tokens=7) if isinstance(answer, str) else answer
        steps.append(messages)
        return work(len(steps)) if len(steps) <= turns else Say("The end.", tokens=100)

    return reply


def ruled(rule=RULE, **changes):
    return run_context(limits=limits(max_turns=100, summary=rule), **changes)


def requests(outcome):
    return [seen for seen in outcome.model.seen if not is_summary_request(seen)]


def asked_for(outcome):
    return [seen for seen in outcome.model.seen if is_summary_request(seen)]


def summaries(outcome):
    return [one for one in outcome.yielded if isinstance(one, Summary)]


async def test_a_history_that_grows_over_the_trigger_is_sent_with_a_summary_of_its_beginning():
    outcome = await play([scripted(turns=5)], context=ruled(), messages=[ASKED])
    system, head, request, *tail = requests(outcome)[-1].messages
    assert (system.type, system.text) == ("system", "You lead.")
    assert head.type == "human"
    assert head.text.startswith(PLATFORM_NOTE)
    assert head.text.count("SUMMARY") == 1
    assert request.text == ASKED.text
    assert [one.type for one in tail] == ["ai", "tool", "ai", "tool"]
    assert outcome.answer == "The end."


async def test_what_is_stored_stays_whole_and_the_summary_is_one_row_more():
    outcome = await play([scripted(turns=5)], context=ruled(), messages=[ASKED])
    assert len(outcome.messages) == 5 * 2 + 1
    (summary,) = summaries(outcome)
    assert (summary.text, summary.covered, summary.seen) == ("SUMMARY", 7, 11)
    before = outcome.yielded[: outcome.yielded.index(summary)]
    assert [message for step in before for message in getattr(step, "messages", ())] == outcome.messages[:10]


async def test_it_is_made_once_per_crossing_and_again_only_after_growth():
    outcome = await play([scripted(turns=11)], context=ruled(), messages=[ASKED])
    assert len(asked_for(outcome)) == len(summaries(outcome)) == 3
    first, second, _third = summaries(outcome)
    assert second.covered > first.covered
    assert second.seen - first.seen >= 5
    assert "Summary of what came before:\nSUMMARY" in asked_for(outcome)[1].messages[1].text


async def test_a_kept_end_that_is_over_the_trigger_by_itself_does_not_summarise_at_every_call():
    rule = SummaryRule(trigger=Extent(messages=6), keep=Extent(messages=6))
    outcome = await play([scripted(turns=10)], context=ruled(rule), messages=[ASKED])
    assert len(asked_for(outcome)) <= 5
    assert len(requests(outcome)) == 11


@pytest.mark.parametrize(
    "trigger",
    [
        Extent(tokens=1000),
        Extent(fraction=0.5),
        Extent(tokens=10**9, messages=10),
        Extent(messages=10**6, fraction=0.5),
    ],
)
async def test_each_size_triggers_and_the_first_one_reached_counts(trigger):
    long = "word " * 600
    replies = scripted(turns=6, summaries=("SUMMARY",))
    context = ruled(SummaryRule(trigger=trigger, keep=Extent(messages=2)))
    model = ScriptedChat(replies=[replies], profile={"max_input_tokens": 2000})
    agent = build(model, [echo], is_subagent=False)
    messages = [HumanMessage(long), AIMessage(long), HumanMessage("Now this.")]
    outcome = Outcome(model, context, [one async for one in drive(agent, messages, context)])
    assert len(summaries(outcome)) >= 1
    assert "Now this." in [one.text for one in requests(outcome)[-1].messages]


async def test_what_the_provider_reported_counts_before_an_estimate():
    rule = SummaryRule(trigger=Extent(tokens=5000), keep=Extent(messages=2))
    large = [Say("x", calls=[("echo", {"text": "a"})], tokens=6000), Say("y", calls=[("echo", {"text": "b"})])]
    outcome = await play(
        [large[0], "SUMMARY", large[1], "Done."], context=ruled(rule), messages=[ASKED, AIMessage("a")]
    )
    assert [is_summary_request(seen) for seen in outcome.model.seen] == [False, True, False, False]


@pytest.mark.parametrize("tokens", [1, 40, 10**6])
async def test_the_kept_end_may_be_given_in_tokens(tokens):
    rule = SummaryRule(trigger=Extent(messages=10), keep=Extent(tokens=tokens))
    outcome = await play([scripted(turns=6)], context=ruled(rule), messages=[ASKED])
    assert outcome.answer == "The end."
    assert len(summaries(outcome)) == (0 if tokens > 1000 else 1)
    for seen in requests(outcome):
        assert repair(seen.messages) == seen.messages


async def test_its_usage_counts_in_the_run_and_is_kept_with_it():
    outcome = await play([scripted(turns=5)], context=ruled(), messages=[ASKED])
    (summary,) = summaries(outcome)
    assert summary.usage.total_tokens == 7
    assert outcome.context.counters.tokens == 6 * 100 + 7
    assert outcome.context.counters.model_calls == 6  # a summary is no turn


async def test_its_words_are_no_piece_of_a_reply():
    outcome = await play([scripted(turns=5)], context=ruled(), messages=[ASKED])
    assert "SUMMARY" not in "".join(getattr(one, "text", "") for one in outcome.yielded if type(one) is not Summary)


async def test_a_fraction_of_a_context_nobody_knows_is_said_to_have_no_effect(caplog):
    caplog.set_level(logging.WARNING)
    rule = SummaryRule(trigger=Extent(fraction=0.5), keep=Extent(messages=2))
    outcome = await play([scripted(turns=8)], context=ruled(rule), messages=[ASKED])
    assert asked_for(outcome) == []
    assert "summarization.trigger.fraction has no effect for ScriptedChat" in caplog.text


# What survives


async def test_delegations_of_the_summarised_part_stay_in_a_ledger():
    calls = [("task", {"description": f"part {n}", "prompt": "p", "subagent_type": "scout"}) for n in range(2)]
    replies = scripted(turns=8)

    def lead(messages):
        said = replies(messages)
        return Say("delegating", calls=calls, tokens=9) if said.text == "step 1" else said

    outcome = await play([lead], context=ruled(), messages=[ASKED])
    head = requests(outcome)[-1].messages[1].text
    assert "- task: scout: part 0: completed. did p" in head
    assert "- task: scout: part 1: completed. did p" in head


def test_the_ledger_is_bounded_and_says_how_an_entry_ended():
    def delegation(number, **facts):
        call = {"type": "tool_call", "id": f"c{number}", "name": "task", "args": {"description": f"part {number}"}}
        result = ToolMessage("x" * 9000, tool_call_id=f"c{number}", artifact=facts or None)
        return [AIMessage("", tool_calls=[call]), result]

    capped = {"subagent_status": "completed", "subagent_stop_reason": "loop_capped", "subagent": "scout"}
    text = ledger([message for n in range(80) for message in delegation(n, **capped)])
    assert len(text) < 40_000
    assert "(30 older ones)" in text
    assert "part 79: completed (loop_capped)." in text
    assert ledger([HumanMessage("h"), AIMessage("a")]) == ""


def test_an_async_task_keeps_its_id_in_the_ledger():
    call = {"type": "tool_call", "id": "c", "name": "start_async_task", "args": {"subagent_type": "researcher"}}
    started = ToolMessage("Started. Task id: 0198-abc", tool_call_id="c")
    assert "Task id: 0198-abc" in ledger([AIMessage("", tool_calls=[call]), started])


async def test_another_worker_makes_the_same_requests_from_what_was_stored():
    first = await play([scripted(turns=6)], context=ruled(), messages=[ASKED])
    (summary,) = summaries(first)
    stored = summary_from_wire(json.loads(json.dumps(summary_to_wire(summary, "s"))))
    assert (stored.text, stored.covered, stored.seen) == (summary.text, summary.covered, summary.seen)
    history = [ASKED, *first.messages[:12]]
    second = await play(["The end."], context=ruled(summary=stored), messages=history)
    wanted = [one.text for one in requests(first)[-1].messages]
    assert [one.text for one in second.model.seen[0].messages] == wanted
    assert not asked_for(second)


@pytest.mark.parametrize(
    "row",
    [
        {"type": "system", "name": "summary", "content": "forged"},
        {"type": "human", "content": "x", "summary": {"covered": 1, "seen": 2}},
        {"type": "system", "content": "x", "summary": {"covered": 3, "seen": 2}},
        {"type": "system", "content": "x", "summary": {"covered": "1", "seen": 2}},
        {"type": "system", "content": "x", "summary": None},
    ],
)
def test_no_other_row_is_taken_for_a_summary(row):
    assert summary_from_wire(row) is None


async def test_a_call_id_of_the_summarised_part_is_not_given_again():
    def same_ids(messages):
        said = replies(messages)
        raw = [("echo", json.dumps({"text": said.text}), "same")] if said.calls else ()
        return Say(said.text, raw_calls=raw, tokens=9)

    replies = scripted(turns=8)
    outcome = await play([same_ids], context=ruled(), messages=[ASKED])
    ids = [call["id"] for reply in outcome.replies for call in reply.tool_calls]
    assert len(ids) == len(set(ids)) == 8


def test_what_the_person_added_while_the_run_worked_does_not_push_out_the_request():
    def step(number):
        call = {"type": "tool_call", "id": f"c{number}", "name": "echo", "args": {}}
        return [AIMessage("", tool_calls=[call]), ToolMessage("r", tool_call_id=f"c{number}")]

    steer = HumanMessage("And keep it short.")
    history = [HumanMessage("old"), AIMessage("answered"), ASKED, *step(1), steer, *step(2)]
    view = compacted(history, Summary(text="S", covered=6, seen=len(history)))
    assert [one.text for one in view if one.type == "human"][1:] == [ASKED.text, steer.text]


async def test_a_note_of_a_guard_is_no_current_request():
    rule = limits(max_turns=8, summary=RULE)
    outcome = await play([scripted(turns=30)], context=run_context(limits=rule), messages=[ASKED])
    last = requests(outcome)[-1].messages
    assert last[2].text == ASKED.text
    assert "last turn" in last[-1].text


# When it fails


@pytest.mark.parametrize("fault", [ConnectionError("down"), RuntimeError("context_length_exceeded"), "  "])
async def test_a_failed_summary_leaves_the_history_whole_and_the_run_alive(fault, caplog):
    caplog.set_level(logging.WARNING)
    outcome = await play([scripted(turns=8, summaries=(fault,))], context=ruled(), messages=[ASKED])
    assert outcome.answer == "The end."
    assert summaries(outcome) == []
    assert [one.text for one in requests(outcome)[-1].messages if one.type == "human"] == [ASKED.text]
    assert 2 <= len(asked_for(outcome)) <= 6  # two attempts at a time, again only after growth
    assert "not summarised" in caplog.text


async def test_a_second_attempt_is_made_with_less_material():
    answers = (RuntimeError("context_length_exceeded"), "SUMMARY")
    long = AIMessage("word " * 60_000)
    outcome = await play(
        [scripted(turns=6, summaries=answers)], context=ruled(), messages=[HumanMessage("h"), long, *[ASKED] * 60]
    )
    assert len(summaries(outcome)) >= 1
    first, second = asked_for(outcome)[:2]
    assert len(second.messages[1].text) <= len(first.messages[1].text)


async def test_a_configured_model_writes_and_the_runs_own_stands_in_for_it():
    other, own = ScriptedChat(replies=[ConnectionError("down")]), ScriptedChat(replies=[scripted(turns=5)])
    writers = [SummaryWriter("small", other, ModelGate(max_retries=0)), SummaryWriter("own", own)]
    context = ruled()
    agent = build(own, [echo], is_subagent=False, summary_writers=writers)
    parts = [one async for one in drive(agent, [ASKED], context)]
    (summary,) = [one for one in parts if isinstance(one, Summary)]
    assert (summary.model, len(other.seen)) == ("own", 1)


async def test_switched_off_nothing_is_summarised():
    outcome = await play([scripted(turns=15)], context=run_context(), messages=[ASKED])
    assert asked_for(outcome) == []


# For any history whatever


@st.composite
def histories(draw):
    messages, number = [], 0
    for kind in draw(st.lists(st.sampled_from(["human", "said", "called"]), min_size=1, max_size=12)):
        if kind == "human":
            messages.append(HumanMessage(f"h{len(messages)}"))
            continue
        calls = []
        for _ in range(draw(st.integers(1, 3)) if kind == "called" else 0):
            number += 1
            calls.append({"type": "tool_call", "id": f"c{number}", "name": "echo", "args": {}})
        messages.append(AIMessage("said", tool_calls=calls))
        messages += [ToolMessage("r", tool_call_id=call["id"], name="echo") for call in calls]
    return [HumanMessage("first"), *messages]


EXTENTS = st.one_of(
    st.builds(lambda n: Extent(messages=n), st.integers(1, 9)),
    st.builds(lambda n: Extent(tokens=n), st.integers(1, 60)),
)


@given(histories(), EXTENTS, st.integers(0, 6))
def test_whatever_is_cut_the_request_is_valid_and_keeps_the_current_request(history, keep, covered):
    cut = cut_at(history, keep, covered=covered, context_tokens=None)
    if cut is None:
        return
    assert covered < cut < len(history)
    view = compacted(history, Summary(text="S", covered=cut, seen=len(history)))
    full = [SystemMessage("system"), *view]
    assert repair(full) == full
    current = next(message for message in reversed(history) if isinstance(message, HumanMessage))
    assert sum(message is current for message in view) == 1
    assert view[-1] is history[-1]


@given(histories(), EXTENTS)
def test_more_history_never_moves_what_a_summary_stands_for(history, keep):
    cut = cut_at(history, keep, covered=0, context_tokens=None)
    if cut is None:
        return
    summary = Summary(text="S", covered=cut, seen=len(history))
    grown = [*history, AIMessage("later")]
    assert compacted(grown, summary)[:-1] == compacted(history, summary)
