"""Real worker processes on the scripted server: they share the work, they are killed, nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django_q.models import Failure, OrmQ, Schedule, Success
from django_q.scheduler import scheduler
from django_q.tasks import async_task, schedule

from runs.models import Run, WorkerHeartbeat
from runs.statuses import RunStatus
from runs.worker.executor import UNKNOWN_OUTCOME
from tests.runs.workers.clusters import (
    QCLUSTER,
    Clusters,
    all_gone,
    clusters,
    frozen,
    worker_pids,
    workers_of,
)
from tests.scripted_model import scripts
from tests.site.processes import alive, descendants, eventually, supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runs.workers.house import House
    from tests.scripted_model import ScriptedModel

pytestmark = [
    pytest.mark.workers,
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which other systems do not have"),
]
HERE = "tests.runs.workers.plain_functions"
LEASE_SECONDS = 2


@pytest.fixture
def cluster(house: House, child_environment: dict[str, str], tmp_path: Path) -> Iterator[Clusters]:
    environment = {
        **child_environment,
        "DEER_FLOW_HOME": str(tmp_path),
        "DEER_FLOW_CONFIG": str(tmp_path / "config.yaml"),
        "SECRET_KEY": settings.SECRET_KEY,  # signs the rows of plain tasks
        "LEASE_SECONDS": str(LEASE_SECONDS),
    }
    with clusters(environment) as group:
        yield group


def lead_with_three_appending_children(house: House) -> tuple[Run, list[str]]:
    """Each child appends one line, then waits for the gate "go" before it answers."""
    children = [scripts.append_line(f"{number}.txt", "once", gate="go") for number in range(3)]
    return house.ask(scripts.delegate_to(children)[1]), [script_id for script_id, _ in children]


def until_appended(house: House, script_ids: list[str]) -> None:
    """Every child has appended its line and waits for the model."""
    house.model.wait_for(lambda model: all(len(model.calls_of(one)) >= 2 for one in script_ids))


def assert_each_line_is_there_once(house: House, run: Run) -> None:
    assert house.again(run).status == RunStatus.SUCCESS
    assert [child.status for child in house.children(run)] == ["success"] * 3
    assert [house.file(run, f"{number}.txt").read_text() for number in range(3)] == ["once\n"] * 3
    house.assert_sound()


def holder_of(run: Run) -> int:
    """The process that executes a run, as its row says."""
    return int(Run.objects.get(pk=run.pk).worker.rpartition(":")[2])


@pytest.mark.postgres
def test_two_clusters_side_by_side_both_execute_children_of_one_lead(
    house: House, cluster: Clusters, model: ScriptedModel
):
    first, second = cluster.start(), cluster.start()
    own = [set(workers_of(spoken)) for spoken in (first, second)]
    for _ in range(5):
        run, script_ids = lead_with_three_appending_children(house)
        until_appended(house, script_ids)
        model.open_gate("go")
        house.until_ended(run)
        assert_each_line_is_there_once(house, run)
        holders = {holder_of(child) for child in house.children(run)}
        if all(holders & pids for pids in own):
            return
        model.reset()
    pytest.fail("one cluster executed no child of five leads")


def test_a_killed_worker_loses_and_repeats_nothing(house: House, cluster: Clusters, model: ScriptedModel):
    cluster.start(workers=2)
    run, script_ids = lead_with_three_appending_children(house)
    until_appended(house, script_ids)
    victim = holder_of(run)
    os.kill(victim, signal.SIGKILL)
    model.open_gate("go")
    house.until_ended(run)
    assert house.again(run).attempt == 2
    assert holder_of(run) != victim
    assert_each_line_is_there_once(house, run)


def test_the_only_worker_killed_is_replaced_and_its_successor_goes_on(
    house: House, cluster: Clusters, model: ScriptedModel
):
    spoken = cluster.start()
    run, script_ids = lead_with_three_appending_children(house)
    until_appended(house, script_ids)
    (victim,) = workers_of(spoken)
    os.kill(victim, signal.SIGKILL)
    model.open_gate("go")
    house.until_ended(run)
    assert {child.attempt for child in house.children(run)} == {2}
    assert_each_line_is_there_once(house, run)


def test_a_cluster_that_slept_longer_than_its_leases_writes_nothing_when_it_wakes(
    house: House, cluster: Clusters, model: ScriptedModel
):
    spoken = cluster.start(workers=2)
    run, script_ids = lead_with_three_appending_children(house)
    until_appended(house, script_ids)
    zombies = workers_of(spoken)
    with frozen(*descendants(spoken.pid), spoken.pid):
        cluster.start()
        house.until(lambda: all(child.attempt == 2 for child in house.children(run)))
        model.wait_for(lambda model: all(len(model.calls_of(one)) >= 3 for one in script_ids))
        model.open_gate("go")  # the answers for the zombie lie in its sockets when it wakes
        house.until_ended(run)
        before = _rows(house, run)
    for zombie in zombies:
        house.until(lambda zombie=zombie: woken_with_nothing(zombie))
    assert _rows(house, run) == before
    assert {holder_of(each) for each in [run, *house.children(run)]}.isdisjoint(zombies)
    assert_each_line_is_there_once(house, run)


def woken_with_nothing(worker_pid: int) -> bool:
    """Whether the worker has looked at its leases again and executes nothing, or its sentinel has replaced it."""
    return not alive(worker_pid) or WorkerHeartbeat.objects.filter(name__endswith=f":{worker_pid}", running=0).exists()


def _rows(house: House, run: Run) -> list[object]:
    return [house.events(each) for each in [run, *house.children(run)]]


def test_sigterm_lets_a_short_run_finish(house: House, cluster: Clusters, model: ScriptedModel):
    spoken = cluster.start()
    script_id, prompt = scripts.gated("go")
    run = house.ask(prompt)
    model.wait_for(lambda model: len(model.calls_of(script_id)) == 1)
    os.kill(spoken.pid, signal.SIGTERM)
    model.open_gate("go")
    assert spoken.end() == 0
    assert (house.again(run).status, house.again(run).attempt) == (RunStatus.SUCCESS, 1)
    assert not WorkerHeartbeat.objects.exists()


def test_sigterm_hands_long_runs_over_and_they_go_on_elsewhere(house: House, cluster: Clusters, model: ScriptedModel):
    leaving = cluster.start()
    run, script_ids = lead_with_three_appending_children(house)
    until_appended(house, script_ids)
    old = set(workers_of(leaving))
    cluster.start()
    os.kill(leaving.pid, signal.SIGTERM)
    assert leaving.end() == 0
    model.wait_for(lambda model: all(len(model.calls_of(one)) >= 3 for one in script_ids))
    model.open_gate("go")
    house.until_ended(run)
    assert {each.lost_workers for each in [house.again(run), *house.children(run)]} == {0}
    assert {holder_of(each) for each in [run, *house.children(run)]}.isdisjoint(old)
    assert_each_line_is_there_once(house, run)


def test_a_tool_in_flight_in_a_killed_worker_is_not_run_again(house: House, cluster: Clusters):
    house.configure(sandbox={"provider": "local", "allow_host_bash": True})
    cluster.start(workers=2)
    command = "echo once >> log.txt; echo $$ > pid; mkfifo never; cat never"
    run = house.ask(scripts.tool_then("bash", {"command": command})[1])
    house.until(house.file(run, "never").exists)
    os.kill(holder_of(run), signal.SIGKILL)
    house.until_ended(run)
    assert house.file(run, "log.txt").read_text() == "once\n"
    (result,) = house.results(run)
    assert result["content"] == UNKNOWN_OUTCOME
    assert all_gone([int(house.file(run, "pid").read_text())])


def test_a_killed_main_process_leaves_no_orphan_and_its_supervisor_brings_it_back(
    house: House, cluster: Clusters, model: ScriptedModel
):
    parent = cluster.start(workers=2, argv=supervisor({"workers": QCLUSTER}))
    run, script_ids = lead_with_three_appending_children(house)
    until_appended(house, script_ids)
    head = min(descendants(parent.pid))
    family = descendants(head)
    assert len(family) == 5  # sentinel, two workers, monitor, pusher
    os.kill(head, signal.SIGKILL)
    assert all_gone(family)
    model.open_gate("go")
    house.until_ended(run)
    assert_each_line_is_there_once(house, run)
    everybody = descendants(parent.pid)
    os.kill(parent.pid, signal.SIGKILL)
    assert all_gone(everybody)


def test_a_worker_whose_loop_has_stalled_is_replaced(house: House, cluster: Clusters, tmp_path: Path):
    spoken = cluster.start()
    (stalled,) = workers_of(spoken)
    async_task(f"{HERE}.stall_the_loop", str(tmp_path / "started"))
    assert eventually(lambda: not alive(stalled))
    run = house.ask(scripts.instant()[1])
    house.until_ended(run)
    assert holder_of(run) != stalled
    house.until(lambda: Success.objects.filter(func=f"{HERE}.stall_the_loop").exists())


def test_plain_tasks_and_schedules_run_beside_the_runs_and_leave_their_results(house: House, cluster: Clusters):
    spoken = cluster.start(workers=2)
    assert set(worker_pids()) == set(workers_of(spoken))
    for name in ("add", "add_later"):
        async_task(f"{HERE}.{name}", 2, 3)
    async_task(f"{HERE}.fail")
    schedule(f"{HERE}.add", 20, 3, name="later", schedule_type=Schedule.ONCE)
    scheduler()  # a sentinel's turn comes every half minute; this is what it calls
    run = house.ask(scripts.instant()[1])
    house.until(lambda: Success.objects.filter(func__startswith=HERE).count() == 3 and Failure.objects.exists())
    assert sorted(row.result for row in Success.objects.filter(func__startswith=HERE)) == [5, 5, 23]
    (failure,) = Failure.objects.all()
    assert "on purpose" in failure.result
    house.until_ended(run)
    assert Success.objects.filter(name=f"run-{run.pk}").exists()
    house.until(lambda: not OrmQ.objects.exists())
    os.kill(spoken.pid, signal.SIGTERM)
    assert spoken.end() == 0
    assert not WorkerHeartbeat.objects.exists()
