"""Whatever a model server does, the run ends in the right state and the thread stays usable."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

import pytest

from runs.event_types import EventType
from runs.statuses import ErrorCode, RunStatus
from tests.runs.workers.house import KEY
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel

FAULTS = {
    "401": (scripts.flaky([401] * 9), ErrorCode.MODEL_REFUSED_KEY, ""),
    "429 for ever": (scripts.flaky([429] * 9), ErrorCode.MODEL_RATE_LIMITED, ""),
    "500": (scripts.flaky([500] * 9), ErrorCode.MODEL_SERVER_ERROR, ""),
    "400": (scripts.flaky([400]), ErrorCode.MODEL_BAD_REQUEST, ""),
    "404": (scripts.flaky([404]), ErrorCode.MODEL_UNKNOWN, ""),
    "cut stream": (scripts.cut(after=3), ErrorCode.MODEL_STREAM_CUT, "t0 t1 t2 "),
    "closed without a finish": (scripts.closed(after=3), ErrorCode.MODEL_STREAM_CUT, "t0 t1 t2 "),
    "garbage": (scripts.script({"garbage": True}), ErrorCode.MODEL_FAILED, ""),
    "empty answer": (scripts.says(""), ErrorCode.NO_ANSWER, ""),
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
