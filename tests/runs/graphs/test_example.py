"""examples/async-supervisor runs here, its agents without a URL in process and with one from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runs.models import Run, Thread
from runs.statuses import RunStatus
from runs.worker import loopback

if TYPE_CHECKING:
    from tests.runs.graphs.registered import GraphHouse

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "async-supervisor"


@pytest.fixture
def example(house: GraphHouse, monkeypatch: pytest.MonkeyPatch) -> GraphHouse:
    monkeypatch.delenv("EXAMPLE_MODEL", raising=False)
    monkeypatch.delenv("AGENTS_URL", raising=False)
    loopback.connect()
    house.configure(langgraph_json=str(EXAMPLE / "langgraph.json"))
    return house


def test_the_supervisor_starts_its_agents_and_hears_how_they_are_doing(example: GraphHouse):
    run = example.answered("supervisor", "Compare two owls.")
    assert (run.status, run.error) == (RunStatus.SUCCESS, "")
    tasks = Thread.objects.get(pk=run.thread_id).values["async_tasks"]
    assert sorted(task["agent_name"] for task in tasks.values()) == ["coder", "researcher"]
    children = [Run.objects.get(pk=task["run_id"]) for task in tasks.values()]
    assert {child.status for child in children} == {RunStatus.SUCCESS}
    # Their ends wake a supervisor that is idle, and one that is busy hears of them in its next turn.
    example.answered("supervisor", "How are they doing?", thread=run.thread)
    tasks = Thread.objects.get(pk=run.thread_id).values["async_tasks"]
    assert [task["status"] for task in tasks.values()] == ["success", "success"]
