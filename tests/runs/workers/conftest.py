from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from subagents import registry
from tests.runs.workers.house import House
from tests.scripted_model.fixtures import scripted_model, scripted_model_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.scripted_model import ScriptedModel

__all__ = ["scripted_model", "scripted_model_server"]


@pytest.fixture
def model(scripted_model: ScriptedModel) -> ScriptedModel:
    return scripted_model


@pytest.fixture
def house(
    transactional_db: None, model: ScriptedModel, tmp_path: Path, settings: Settings, django_user_model: type
) -> Iterator[House]:
    """Ends with a look at every thread and run: all must have ended, and ended well-formed."""
    settings.CONFIG_FILE = tmp_path / "config.yaml"
    settings.DEER_FLOW_HOME = tmp_path
    owner = django_user_model.objects.create_user("ada")
    registry.forget()
    house = House(model, owner, settings.CONFIG_FILE)
    yield house
    house.assert_sound()
    registry.forget()
