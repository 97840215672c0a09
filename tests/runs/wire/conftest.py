"""The wire as programs meet it: real web and worker processes on the test's database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from tests.conftest import process_environment
from tests.runs.wire.fixtures import anna, bert, dropping, model, transactional_db
from tests.runs.wire.processes import WebProcess, WorkerProcesses

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.scripted_model import ScriptedModel

__all__ = ["anna", "bert", "dropping", "model", "transactional_db"]


@pytest.fixture(scope="package")
def environment(transactional_db: None, model: ScriptedModel, home_folder: Path) -> dict[str, str]:
    """Of the product's processes: the test's own database, home folder and configuration."""
    return {**process_environment(home_folder), "DEER_FLOW_CONFIG": str(settings.CONFIG_FILE), "LEASE_SECONDS": "4"}


@pytest.fixture(scope="package")
def web(environment: dict[str, str]) -> Iterator[WebProcess]:
    with WebProcess(environment) as server:
        yield server


@pytest.fixture(scope="package")
def worker(environment: dict[str, str]) -> Iterator[WorkerProcesses]:
    with WorkerProcesses(environment) as running:
        yield running
