"""Guards of leads and subagents on a real database: what ends a run, what is told, what another worker still knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runs.event_types import EventType
from runs.statuses import ErrorCode, RunStatus
from tests.runs.workers.house import Worker
from tests.runs.workers.test_continuing import ENDS
from tests.scripted_model import Reply, ToolCall, scripts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runs.workers.house import House
    from tests.scripted_model import ModelCall, ScriptedModel

LOOK = scripts.call("ls")
FORCED = "With what I have."
SUMMARISED = {"enabled": True, "trigger": {"messages": 8}, "keep": {"messages": 4}}


def test_a_lead_that_goes_round_in_circles_ends_after_six_calls_with_what_it_has(house: House, model: ScriptedModel):
    script_id, prompt = scripts.script(*[{"calls": [LOOK]}] * 5, {"calls": [LOOK], "text": FORCED})
    run = house.answer(prompt)
    assert (run.status, run.stop_reason, run.model_calls) == (RunStatus.SUCCESS, "loop_capped", 6)
    assert len(model.calls_of(script_id)) == 6
    assert house.said(run) == FORCED
    (ended,) = house.events(run, EventType.RUN_ENDED)
    assert ended["detail"] == {
        "limit": 5,
        "used": 5,
        "layer": "loop_detection.hard_limit",
        "tool": "ls",
        "kind": "identical",
    }
    assert "5 times (loop_detection.hard_limit)" in ended["why"]


def test_a_loop_without_a_word_is_an_error_that_says_why(house: House):
    run = house.answer(scripts.tool_loop("ls", {})[1])
    assert (run.status, run.stop_reason, run.error_code) == (RunStatus.ERROR, "loop_capped", ErrorCode.NO_ANSWER)
    assert run.model_calls == 6


def test_the_lead_is_told_apart_a_subagent_that_looped_with_and_without_an_answer(house: House):
    said = scripts.script(*[{"calls": [LOOK]}] * 5, {"calls": [LOOK], "text": FORCED})
    silent = scripts.tool_loop("ls", {})
    run = house.answer(scripts.delegate_to([said, silent])[1])
    assert run.status == RunStatus.SUCCESS
    results = sorted(house.results(run), key=lambda result: str(result["artifact"]["subagent_status"]))
    facts = [(r["artifact"]["subagent_status"], r["artifact"]["subagent_stop_reason"], r["status"]) for r in results]
    assert facts == [("completed", "loop_capped", "success"), ("failed", "loop_capped", "error")]
    assert FORCED in str(results[0]["content"])
    endings = house.events(run, EventType.TASK_ENDED)
    assert {ended["task"] for ended in endings} == {str(child.pk) for child in house.children(run)}
    assert {ended["detail"]["tool"] for ended in endings} == {"ls"}


def test_one_tool_called_again_and_again_is_stopped_by_its_own_limit(house: House):
    house.configure(loop_detection={"tool_freq_overrides": {"ls": {"warn": 2, "hard_limit": 4}}})
    run = house.answer(scripts.varied_loop("ls", lambda number: {"path": f"d{number}"}, 30)[1])
    assert (run.stop_reason, run.model_calls) == ("loop_capped", 5)
    (ended,) = house.events(run, EventType.RUN_ENDED)
    assert ended["detail"]["layer"] == "loop_detection.tool_freq_overrides.ls.hard_limit"
    assert "ls" in ended["why"]


def test_switched_off_it_leaves_the_end_to_the_other_guards(house: House):
    house.configure(loop_detection={"enabled": False}, runs={"max_turns": 9})
    run = house.answer(scripts.tool_loop("ls", {})[1])
    assert (run.stop_reason, run.model_calls) == ("turn_capped", 9)


@ENDS
def test_another_worker_goes_on_with_the_count_of_repetitions(
    house: House, model: ScriptedModel, end: Callable[..., None]
):
    steps: list[dict[str, Any]] = [{"calls": [LOOK]}] * 6
    steps[3] = {"calls": [LOOK], "gate": "go"}
    script_id, prompt = scripts.script(*steps, {"text": FORCED})
    run = house.ask(prompt)
    with Worker() as first:
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 4)
        end(house, first)
    model.open_gate("go")
    house.work()
    assert (house.again(run).stop_reason, house.again(run).model_calls) == ("loop_capped", 6)
    fourth = model.calls_of(script_id)[4]  # asked again by the second worker, warned as the first one was
    assert "same tool call (ls) 3 times" in fourth.user_text
    assert fourth.messages == model.calls_of(script_id)[3].messages


@ENDS
def test_another_worker_knows_which_guard_had_ended_the_run(
    house: House, model: ScriptedModel, end: Callable[..., None]
):
    script_id, prompt = scripts.script(*[{"calls": [LOOK]}] * 5, {"calls": [LOOK], "text": FORCED, "gate": "go"})
    run = house.ask(prompt)
    with Worker() as first:
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 6)
        end(house, first)
    model.open_gate("go")
    house.work()
    ended = house.again(run)
    assert (ended.status, ended.stop_reason, ended.stop_detail["tool"]) == (RunStatus.SUCCESS, "loop_capped", "ls")
    assert len(model.calls_of(script_id)) == 7  # the one that was under way is asked again, nothing else


@ENDS
def test_another_worker_does_not_warn_again_of_the_token_budget(
    house: House, model: ScriptedModel, end: Callable[..., None]
):
    house.configure(subagents={"token_budget": {"max_tokens": 1000, "warn_threshold": 0.1}})
    steps = [{"calls": [scripts.call("ls", path=f"d{n}")], "usage": [100, 20]} for n in range(2)]
    script_id, prompt = scripts.script(*steps, {"calls": [LOOK], "usage": [1, 1], "gate": "go"}, {"text": "End."})
    run = house.ask(prompt)
    with Worker() as first:
        model.wait_for(lambda model: len(model.calls_of(script_id)) == 3)
        end(house, first)
    model.open_gate("go")
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    warned = ["of 1000 tokens" in call.user_text for call in model.calls_of(script_id)]
    assert warned == [False, True, False, False, False]


# Summaries


class Worked:
    """A model without a script: works some turns, then answers; summaries are `SUMMARY`."""

    def __init__(self, model: ScriptedModel, turns: int) -> None:
        self.turns = turns
        self.done = 0
        self.summaries: list[ModelCall] = []
        self.requests: list[ModelCall] = []
        self.gate: int | None = None
        model.responder(self)

    def __call__(self, call: ModelCall) -> Reply:
        if call.system_text.startswith("You shorten the record"):
            self.summaries.append(call)
            return Reply(text="SUMMARY", usage=(30, 12))
        self.requests.append(call)
        if len(self.requests) > self.turns:
            return Reply(text="The end.", usage=(10, 1))
        gate = "go" if len(self.requests) == self.gate else None
        step = ToolCall(name="ls", arguments={"path": f"d{len(self.requests)}"})
        return Reply(text=f"step {len(self.requests)}", calls=(step,), usage=(10, 1), gate=gate)

    def last(self) -> list[str]:
        return [f"{message['role']}: {message.get('content')}" for message in self.requests[-1].messages]


def test_a_long_history_is_sent_summarised_and_stored_whole(house: House, model: ScriptedModel):
    house.configure(summarization=SUMMARISED)
    worked = Worked(model, turns=6)
    run = house.answer("Write the report.")
    assert run.status == RunStatus.SUCCESS
    system, head, request, *_tail = worked.last()
    assert system.startswith("system: ")
    assert head.count("SUMMARY") == 1
    assert request == "user: Write the report."
    stored = house.messages(run)
    assert [message["type"] for message in stored].count("ai") == 7
    rows = [message for message in stored if message.get("name") == "summary"]
    assert len(rows) == len(worked.summaries) >= 1
    assert run.model_calls == 7
    assert run.total_tokens == 7 * 11 + len(rows) * 42
    assert run.guard_tokens == run.total_tokens


def test_a_subagents_history_is_summarised_by_the_same_switch(house: House, model: ScriptedModel):
    house.configure(summarization=SUMMARISED)
    lead = scripts.script({"calls": [scripts.task_call("part", "Work for long.")]}, {"text": "Fine."})
    worked = Worked(model, turns=6)
    run = house.answer(lead[1])
    (child,) = house.children(run)
    assert child.status == RunStatus.SUCCESS
    assert worked.summaries
    assert worked.last()[2] == "user: Work for long."
    (result,) = house.results(run)
    assert result["content"] == "The end."
    assert result["artifact"]["usage"]["total_tokens"] == child.total_tokens == 7 * 11 + len(worked.summaries) * 42


@ENDS
def test_another_worker_sends_the_same_summarised_history(house: House, model: ScriptedModel, end: Callable[..., None]):
    house.configure(summarization=SUMMARISED)
    worked = Worked(model, turns=6)
    worked.gate = 5
    run = house.ask("Write the report.")
    with Worker() as first:
        model.wait_for(lambda _model: len(worked.requests) == 5)
        end(house, first)
    before = len(worked.summaries)
    model.open_gate("go")
    house.work()
    assert house.again(run).status == RunStatus.SUCCESS
    assert before >= 1
    fifth, again = worked.requests[4:6]
    assert again.messages == fifth.messages
    assert "SUMMARY" in str(again.messages[1]["content"])


def test_the_next_run_of_the_thread_begins_with_the_summary(house: House, model: ScriptedModel):
    house.configure(summarization=SUMMARISED)
    worked = Worked(model, turns=6)
    run = house.answer("Write the report.")
    again = house.answer("And now shorter.", thread=run.thread)
    assert again.status == RunStatus.SUCCESS
    assert "SUMMARY" in worked.last()[1]
    assert worked.last()[-1] == "user: And now shorter."


@pytest.mark.parametrize("reply", [Reply(fail_statuses=(400,) * 9), Reply(text=" ")])
def test_a_summary_that_fails_ends_nothing(house: House, model: ScriptedModel, reply: Reply):
    house.configure(summarization=SUMMARISED)
    worked = Worked(model, turns=6)

    @model.responder
    def failing(call: ModelCall) -> Reply:
        return reply if call.system_text.startswith("You shorten the record") else worked(call)

    run = house.answer("Write the report.")
    assert run.status == RunStatus.SUCCESS
    assert worked.last()[1] == "user: Write the report."
    assert not [message for message in house.messages(run) if message.get("name") == "summary"]
