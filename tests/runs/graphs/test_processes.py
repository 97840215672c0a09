"""A graph on real worker processes: the one that has it is killed, another goes on from the last step."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from runs.models import Run, Thread
from runs.statuses import RunStatus
from subagents.models import GraphLoad
from tests.runs.workers.clusters import Clusters, clusters
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runs.graphs.registered import GraphHouse
    from tests.scripted_model import ScriptedModel

pytestmark = [
    pytest.mark.workers,
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which other systems do not have"),
]
SOURCE = """
from pathlib import Path

class State(MessagesState):
    done: Annotated[list[str], operator.add]

def first(state):
    with Path(__file__).with_name("first.txt").open("a") as file:
        file.write("once\\n")
    return {{"done": ["first"]}}

def second(state):
    return {{"done": ["second"], "messages": [chat_model().invoke(state["messages"])]}}

graph = chain(State, first, second)
"""


@pytest.fixture
def cluster(house: GraphHouse, child_environment: dict[str, str], tmp_path: Path) -> Iterator[Clusters]:
    environment = {
        **child_environment,
        "DEER_FLOW_HOME": str(tmp_path),
        "DEER_FLOW_CONFIG": str(tmp_path / "config.yaml"),
        "SECRET_KEY": settings.SECRET_KEY,
        "LEASE_SECONDS": "2",
    }
    with clusters(environment) as group:
        yield group


def test_a_killed_worker_costs_a_graph_no_finished_step(
    house: GraphHouse, cluster: Clusters, model: ScriptedModel, tmp_path: Path
):
    house.graphs(steps=SOURCE.format())
    script_id, prompt = scripts.gated("go")
    run = house.start("steps", prompt)
    cluster.start(workers=2)
    house.until_calls(script_id)
    os.kill(int(Run.objects.get(pk=run.pk).worker.rpartition(":")[2]), signal.SIGKILL)
    house.until(lambda: house.again(run).attempt == 2)
    model.open_gate("go")
    (run,) = house.until_ended(run)
    assert (run.status, run.error) == (RunStatus.SUCCESS, "")
    assert (tmp_path / "first.txt").read_text() == "once\n"
    assert Thread.objects.get(pk=run.thread_id).values["done"] == ["first", "second"]
    assert [message["type"] for message in house.messages(run)] == ["human", "ai"]
    house.until(lambda: GraphLoad.objects.filter(name="steps", error="").exists())
