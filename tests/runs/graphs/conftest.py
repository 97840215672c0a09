from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from subagents import registry
from tests.runs.graphs.registered import GraphHouse
from tests.runs.workers.conftest import model, scripted_model, scripted_model_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.scripted_model import ScriptedModel

__all__ = ["model", "scripted_model", "scripted_model_server"]


@pytest.fixture
def house(
    transactional_db: None, model: ScriptedModel, tmp_path: Path, settings: Settings, django_user_model: type
) -> Iterator[GraphHouse]:
    settings.CONFIG_FILE = tmp_path / "config.yaml"
    settings.DEER_FLOW_HOME = tmp_path
    owner = django_user_model.objects.create_user("ada")
    registry.forget()
    yield GraphHouse(model, owner, settings.CONFIG_FILE)
    registry.forget()
