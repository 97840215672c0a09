"""The database goes away under load: restarted, or with a full disk. Nothing is lost, doubled or stuck."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.backends.signals import connection_created
from django_q.models import OrmQ

from runs.models import Run
from runs.statuses import RunStatus
from subagents import registry
from tests.patience import PATIENCE_SECONDS
from tests.runs.workers.house import House, Worker
from tests.runs.workers.own_postgres import own_server
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.workers, pytest.mark.faults]
LEASE_SECONDS = 2
TOKENS = 8_000  # an answer that needs pages of its own


def leads_with_appending_children(house: House, leads: int = 4) -> tuple[list[Run], list[str]]:
    runs, script_ids = [], []
    for lead in range(leads):
        children = [scripts.append_line(f"{lead}-{number}.txt", "once", gate="go") for number in range(3)]
        runs.append(house.ask(scripts.delegate_to(children)[1]))
        script_ids.extend(script_id for script_id, _prompt in children)
    return runs, script_ids


def assert_done_once(house: House, runs: list[Run]) -> None:
    for lead, run in enumerate(runs):
        assert house.again(run).status == RunStatus.SUCCESS
        names = [f"{lead}-{number}.txt" for number in range(3)]
        assert [house.file(run, name).read_text() for name in names] == ["once\n"] * 3
    house.assert_sound()


@pytest.mark.postgres
def test_a_database_that_is_restarted_under_load_costs_time_and_no_run(
    model: ScriptedModel, tmp_path: Path, settings: Settings, django_db_blocker: Any
):
    settings.CONFIG_FILE, settings.DEER_FLOW_HOME = tmp_path / "config.yaml", tmp_path
    registry.forget()
    with django_db_blocker.unblock(), own_server() as server:
        house = House(model, get_user_model().objects.create_user("ada"), settings.CONFIG_FILE)
        runs, script_ids = leads_with_appending_children(house)
        with Worker(name="one", lease_seconds=LEASE_SECONDS), Worker(name="two", lease_seconds=LEASE_SECONDS):
            model.wait_for(lambda model: all(len(model.calls_of(one)) >= 2 for one in script_ids))
            server.stop()
            model.open_gate("go")  # answers arrive while there is nowhere to write them
            model.wait_for(lambda model: all(model.calls_of(one)[-1].ended_at for one in script_ids))
            server.start()
            connection.close()
            house.until(lambda: not Run.objects.active().exists())
        assert_done_once(house, runs)
    registry.forget()


@pytest.fixture
def full_disk(transactional_db: None) -> Iterator[FullDisk]:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # pages that earlier tests emptied would take the answer on a full disk
    disk = FullDisk()
    connection_created.connect(disk.limit)
    yield disk
    connection_created.disconnect(disk.limit)


class FullDisk:
    """While it is full, no connection of this process may make the database's file any longer."""

    def __init__(self) -> None:
        self.is_full = False

    def limit(self, **_signal: Any) -> None:
        if self.is_full:
            with connection.cursor() as cursor:
                (pages,) = cursor.execute("PRAGMA page_count").fetchone()
                cursor.execute(f"PRAGMA max_page_count = {pages}")

    def fill(self, worker: Worker) -> None:
        self.is_full = True
        asyncio.run_coroutine_threadsafe(worker.host.database.call(self.limit), worker._loop).result(PATIENCE_SECONDS)


@pytest.mark.cannot_run_here("limits the file of SQLite")
@pytest.mark.skipif(connection.vendor != "sqlite", reason="limits the file of SQLite")
def test_a_disk_that_is_full_for_a_while_costs_time_and_no_run(
    house: House, model: ScriptedModel, full_disk: FullDisk, caplog: pytest.LogCaptureFixture
):
    children = [scripts.append_line(f"0-{number}.txt", "once", gate="go") for number in range(3)]
    run = house.ask(scripts.delegate_to(children)[1])
    long_id, long_prompt = scripts.script({"tokens": TOKENS, "gate": "go"})
    talker = house.ask(long_prompt)
    # Long enough that only the disk can cost it, however busy the machine is while the answer streams.
    with Worker(lease_seconds=3 * LEASE_SECONDS) as worker:
        model.wait_for(lambda model: all(len(model.calls_of(one)) >= 2 for one, _prompt in children))
        house.until_calls(long_id)
        full_disk.fill(worker)
        model.open_gate("go")
        house.until(lambda: "disk is full" in caplog.text)
        assert house.again(talker).status == RunStatus.RUNNING
        full_disk.is_full = False
        house.until(lambda: not Run.objects.active().exists(), 90)
    talker = house.again(talker)
    assert (talker.status, talker.stop_reason, talker.error) == (RunStatus.SUCCESS, "", "")
    assert house.said(talker).split() == [f"t{number}" for number in range(TOKENS)]
    assert_done_once(house, [run])
    assert not OrmQ.objects.exists()
