"""Fixtures for `pytest_plugins = ["tests.scripted_model.fixtures"]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scripted_model.running import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def scripted_model_server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def scripted_model(scripted_model_server: ScriptedModel) -> ScriptedModel:
    """The session's server, with nothing left over from another test."""
    scripted_model_server.reset()
    return scripted_model_server
