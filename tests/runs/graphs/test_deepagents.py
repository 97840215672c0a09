"""A deepagents graph from PyPI runs unchanged; its background agents without a URL are ours, asked in process."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from runs.models import Run, Thread
from runs.statuses import RunStatus
from runs.worker import loopback
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.graphs.registered import GraphHouse

DEEP = """
from deepagents import create_deep_agent

graph = create_deep_agent(
    model=chat_model(),
    system_prompt="You supervise.",
    subagents=[{"name": "researcher", "description": "Looks things up.", "graph_id": "researcher"}],
)
"""
RESEARCHER = """
model = chat_model()

def talk(state):
    return {"messages": [model.invoke(state["messages"])]}

graph = chain(MessagesState, talk)
"""


@pytest.fixture(autouse=True)
def connected() -> None:
    loopback.connect()


def test_the_version_under_test_is_the_newest_that_is_pinned():
    assert version("deepagents") == "0.7.32"


def test_a_deep_agent_answers_and_keeps_its_files(house: GraphHouse):
    house.graphs(deep=DEEP)
    write = scripts.call("write_file", file_path="/notes.md", content="Owls see well.")
    run = house.answered("deep", scripts.script({"calls": [write]}, {"text": "Done."})[1])
    assert (run.status, run.error) == (RunStatus.SUCCESS, "")
    assert [message["type"] for message in house.messages(run)] == ["human", "ai", "tool", "ai"]
    assert "Owls see well." in str(Thread.objects.get(pk=run.thread_id).values["files"]["/notes.md"])
    assert run.model_calls == 2


def test_a_background_agent_without_a_url_is_a_run_of_the_same_owner(house: GraphHouse):
    house.graphs(deep=DEEP, researcher=RESEARCHER)
    work = scripts.says("Owls see well.")
    start = scripts.call("start_async_task", description=work[1], subagent_type="researcher")
    run = house.answered("deep", scripts.script({"calls": [start]}, {"text": "It works on it."})[1])
    assert (run.status, run.error) == (RunStatus.SUCCESS, "")
    (task,) = Thread.objects.get(pk=run.thread_id).values["async_tasks"].values()
    child = Run.objects.get(pk=task["run_id"])
    assert (child.agent, str(child.thread_id), child.thread.owner_id) == ("researcher", task["task_id"], house.owner.pk)
    assert house.again(child).status == RunStatus.SUCCESS
    check = scripts.call("check_async_task", task_id=task["task_id"])
    again = house.answered("deep", scripts.script({"calls": [check]}, {"text": "Read."})[1], thread=run.thread)
    results = [m for m in house.messages(again) if m["type"] == "tool" and m["name"] == "check_async_task"]
    assert json.loads(results[-1]["content"])["result"] == "Owls see well."
