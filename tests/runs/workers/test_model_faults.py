"""Whatever a model server does, the run ends in the right state and the thread stays usable."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

import pytest

from runs import services
from runs.event_types import EventType
from runs.log import read
from runs.statuses import ErrorCode, RunStatus
from runs.web.frames import Feed
from tests.runs.workers.house import KEY, Worker
from tests.scripted_model import Reply, scripts

if TYPE_CHECKING:
    from tests.runs.workers.house import House
    from tests.scripted_model import ModelCall, ScriptedModel

FAULTS = {
    "401": (scripts.flaky([401] * 9), ErrorCode.MODEL_REFUSED_KEY, ""),
    "429 for ever": (scripts.flaky([429] * 9), ErrorCode.MODEL_RATE_LIMITED, ""),
    "500": (scripts.flaky([500] * 9), ErrorCode.MODEL_SERVER_ERROR, ""),
    "400": (scripts.flaky([400]), ErrorCode.MODEL_BAD_REQUEST, ""),
    "404": (scripts.flaky([404]), ErrorCode.MODEL_UNKNOWN, ""),
    "cut stream": (scripts.cut(after=3), ErrorCode.MODEL_STREAM_CUT, "t0 t1 t2 "),
    "closed without a finish": (scripts.closed(after=3), ErrorCode.MODEL_STREAM_CUT, "t0 t1 t2 "),
    "garbage": (scripts.script({"garbage": True}), ErrorCode.MODEL_UNREADABLE, ""),
    "empty answer": (scripts.says(""), ErrorCode.NO_ANSWER, ""),
    "no quota": (scripts.script({"fail": [402]}), ErrorCode.MODEL_QUOTA_USED_UP, ""),
    "too long": (scripts.script({"fail": [413] * 9}), ErrorCode.MODEL_CONTEXT_OVERFLOW, ""),
    "error within": (scripts.script({"tokens": 9, "error": 3}), ErrorCode.MODEL_SERVER_ERROR, "t0 t1 t2 "),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_its_code_keeps_what_had_come_and_leaves_the_thread_usable(
    house: House, model: ScriptedModel, name: str, caplog: pytest.LogCaptureFixture
):
    (script_id, prompt), code, kept = FAULTS[name]
    with caplog.at_level(logging.DEBUG):
        run = house.answer(prompt)
    assert (run.status, run.error_code) == (RunStatus.ERROR, code)
    (ended,) = house.events(run, EventType.RUN_ENDED)
    assert ended["error"].strip()
    assert ended["why"].strip()
    assert KEY not in caplog.text
    partial = [message for message in house.messages(run) if message.get("partial")]
    assert [message["content"] for message in partial] == ([kept] if kept else [])
    assert model.calls_of(script_id)

    again = house.answer(scripts.says("Fine.")[1], thread=run.thread)
    assert again.status == RunStatus.SUCCESS
    assert house.said(again) == "Fine."
    assert KEY not in str(house.events(run))


def test_a_server_that_is_down_is_unreachable(house: House, model: ScriptedModel):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gone = {
        "name": "gone",
        "use": "langchain_openai:ChatOpenAI",
        "api_key": KEY,
        "base_url": f"http://127.0.0.1:{port}/v1",
    }
    house.configure(more_models=[{**gone, "max_retries": 0}])
    run = house.answer("Hello", model_name="gone")
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.MODEL_UNREACHABLE)
    assert house.answer("Hello", thread=run.thread).status == RunStatus.SUCCESS


def test_a_429_that_passes_is_no_fault(house: House):
    run = house.answer(scripts.flaky([429, 429], text="In the end.")[1])
    assert (run.status, run.error_code) == (RunStatus.SUCCESS, "")
    assert house.said(run) == "In the end."


def test_a_server_that_hangs_is_ended_by_the_clock(house: House, model: ScriptedModel):
    house.configure(runs={"timeout_seconds": 1})
    script_id, prompt = scripts.hanging()
    run = house.answer(prompt)
    assert (run.status, run.error_code) == (RunStatus.TIMEOUT, ErrorCode.TIMED_OUT)
    model.wait_for(lambda model: model.calls_of(script_id)[0].disconnected_at is not None)
    assert house.answer(scripts.instant()[1], thread=run.thread).status == RunStatus.SUCCESS


def test_a_stream_that_stalls_keeps_what_had_come(house: House):
    house.configure(runs={"timeout_seconds": 1})
    run = house.answer(scripts.script({"tokens": 9, "stall": 4})[1])
    assert run.status == RunStatus.TIMEOUT
    assert house.said(run) == "t0 t1 t2 t3 "


def test_malformed_arguments_are_told_to_the_model_and_nothing_is_run(house: House):
    write = scripts.call("write_file", path="a.md", content="x")
    run = house.answer(scripts.script({"calls": [write], "malformed": True}, {"text": "Never mind."})[1])
    assert run.status == RunStatus.SUCCESS
    (result,) = house.results(run)
    assert result["status"] == "error"
    assert not house.file(run, "a.md").exists()


def test_arguments_that_come_in_pieces_are_put_together(house: House):
    write = scripts.call("write_file", path="备忘.md", content="“split” é 测试\n")
    run = house.answer(scripts.script({"calls": [write], "split": True}, {})[1])
    assert run.status == RunStatus.SUCCESS
    assert house.file(run, "备忘.md").read_text() == "“split” é 测试\n"


def test_call_ids_that_repeat_start_one_child_each(house: House):
    calls = [scripts.task_call("part", scripts.instant()[1]) for _ in range(2)]
    first, second = ({"calls": [call], "duplicate_ids": True} for call in calls)
    run = house.answer(scripts.script(first, second, {})[1])
    assert run.status == RunStatus.SUCCESS
    assert len(house.children(run)) == 2


def test_the_fault_of_one_child_is_a_result_for_its_lead(house: House):
    broken, fine = scripts.flaky([401] * 9), scripts.instant()
    run = house.answer(scripts.delegate_to([broken, fine])[1])
    assert run.status == RunStatus.SUCCESS
    failed, done = house.children(run)
    assert (failed.status, failed.error_code) == (RunStatus.ERROR, ErrorCode.MODEL_REFUSED_KEY)
    assert done.status == RunStatus.SUCCESS
    result = next(r for r in house.results(run) if r["artifact"]["child_run_id"] == str(failed.pk))
    assert result["artifact"]["subagent_status"] == "failed"
    assert "refused the key" in str(result["content"])
    assert KEY not in str(result)


def test_the_fault_of_a_lead_after_its_children_keeps_their_results(house: House):
    calls = [scripts.task_call("part", scripts.instant()[1])]
    run = house.answer(scripts.script({"calls": calls}, {"fail": [500] * 9})[1])
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.MODEL_SERVER_ERROR)
    (result,) = house.results(run)
    assert result["artifact"]["subagent_status"] == "completed"


def test_an_answer_that_breaks_off_is_written_anew_and_shown_once(house: House, model: ScriptedModel):
    @model.responder
    def breaks_once(call: ModelCall) -> Reply:
        return Reply(tokens=6, cut_after=3) if call.number == 1 else Reply(text="In the end.")

    run = house.answer("Go.")
    assert run.status == RunStatus.SUCCESS
    assert [message["type"] for message in house.messages(run)] == ["human", "ai"]
    deltas = house.events(run, EventType.DELTA)
    (message,) = [one for one in house.messages(run) if one["type"] == "ai"]
    assert {delta["id"] for delta in deltas} == {message["id"]}
    assert [bool(delta.get("restarts")) for delta in deltas].count(True) == 1
    waits = [event.get("waiting_for") for event in house.events(run, EventType.RUN_WAITING)]
    assert waits == ["retry", None]
    feed = Feed()
    frames = feed.take(read(run.thread_id, 0)[: -2 - len(waits)], now=0.0)
    frames += feed.take(read(run.thread_id, 0)[-2 - len(waits) : -2], now=9.0)
    shown = [frame for frame in frames if frame["type"] == "delta"]
    assert "t0" in shown[0]["open_html"]
    assert "t0" not in shown[-1]["open_html"]


def test_an_answer_that_stalls_again_and_again_is_called_that(house: House, model: ScriptedModel):
    house.configure(more_models=[{**house.scripted_entry("slow"), "timeout_seconds": 1, "max_retries": 0}])
    run = house.answer(scripts.script({"tokens": 9, "stall": 4})[1], model_name="slow")
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.MODEL_STALLED)
    assert house.said(run) == "t0 t1 t2 t3 "


def test_a_refused_answer_is_an_error_that_keeps_its_words(house: House):
    child = scripts.says("Well, I", finish="content_filter", usage=[10, 3])
    run = house.answer(scripts.delegate_to([child])[1])
    (refused,) = house.children(run)
    assert (refused.status, refused.error_code) == (RunStatus.ERROR, ErrorCode.MODEL_REFUSAL)
    assert refused.total_tokens == 13
    (result,) = house.results(run)
    assert result["artifact"]["subagent_status"] == "failed"
    assert "safety filter" in str(result["content"])
    assert "Well, I" in str(result["content"])


def test_an_empty_answer_is_asked_for_once_more_and_counted(house: House, model: ScriptedModel):
    model.replies([Reply(text="", usage=(10, 1)), Reply(text="Here.", usage=(20, 2))])
    run = house.answer("Go.")
    assert (run.status, run.model_calls, run.total_tokens) == (RunStatus.SUCCESS, 2, 33)
    assert house.said(run) == "Here."
    assert len(model.requests) == 2


def test_a_server_that_keeps_failing_is_left_alone_for_a_while(house: House, model: ScriptedModel):
    broken = scripts.flaky([500] * 99)
    with Worker():
        ended = [house.until_ended(house.ask(broken[1]))[0] for _ in range(3)]
    assert [run.error_code for run in ended[:2]] == [ErrorCode.MODEL_SERVER_ERROR] * 2
    assert ended[2].error_code == ErrorCode.MODEL_RESTING
    assert "failed 5 times in a row" in ended[2].error
    assert len(model.calls_of(broken[0])) == 5


def test_a_model_that_allows_one_call_at_a_time_gets_one_and_the_others_say_what_they_wait_for(
    house: House, model: ScriptedModel
):
    house.configure(more_models=[{**house.scripted_entry("narrow"), "max_concurrency": 1}])
    first, second = scripts.gated("go"), scripts.gated("go")
    runs = [house.ask(prompt, model_name="narrow") for _, prompt in (first, second)]
    other = house.ask(scripts.instant()[1])
    with Worker(slots=2) as worker:
        house.until(lambda: "model" in {house.again(run).waiting_for for run in runs})
        house.until_ended(other)  # the run that waits for the model holds no slot
        model.open_gate("go")
        ended = house.until_ended(*runs)
        house.until(lambda: (worker.host.slots.free, worker.host.waiting) == (2, 0))
    assert {run.status for run in ended} == {RunStatus.SUCCESS}
    calls = [call for script_id, _ in (first, second) for call in model.calls_of(script_id)]
    one, two = sorted(calls, key=lambda call: call.started_at)
    assert one.ended_at is not None
    assert two.started_at >= one.ended_at


def test_a_run_can_be_cancelled_while_it_waits_for_the_model(house: House, model: ScriptedModel):
    house.configure(more_models=[{**house.scripted_entry("narrow"), "max_concurrency": 1}])
    first, second = scripts.gated("go"), scripts.gated("go")
    runs = [house.ask(prompt, model_name="narrow") for _, prompt in (first, second)]
    with Worker() as worker:
        house.until(lambda: "model" in {house.again(run).waiting_for for run in runs})
        waiting = next(run for run in runs if house.again(run).waiting_for == "model")
        services.cancel_run(run_id=waiting.pk, by="ada")
        assert house.until_ended(waiting)[0].status == RunStatus.CANCELLED
        model.open_gate("go")
        house.until_ended(*runs)
        house.until(lambda: (worker.host.slots.free, worker.host.waiting) == (100, 0))


def test_a_conversation_that_is_too_long_for_its_model_goes_on_without_its_beginning(
    house: House, model: ScriptedModel
):
    turns = [house.answer("Say one.")]
    for _ in range(4):
        turns.append(house.answer("Say another.", thread=turns[0].thread))

    @model.responder
    def small(call: ModelCall) -> Reply:
        overflow = Reply(fail_statuses=(400,) * 9, fail_message="maximum context length is 10 tokens")
        return overflow if call.message_count > 8 else Reply(text="Still here.")

    run = house.answer("And now?", thread=turns[0].thread)
    assert run.status == RunStatus.SUCCESS
    assert house.said(run) == "Still here."
    before = len(model.requests)
    again = house.answer("And then?", thread=run.thread)
    assert again.status == RunStatus.SUCCESS
    assert len(model.requests) == before + 1  # what was left out stays left out
    assert house.messages(again)[0]["content"] == "Say one."
