from __future__ import annotations

import pytest

from engine.sandbox.workspace import Workspace
from tests.scripted_model.fixtures import scripted_model, scripted_model_server

__all__ = ["scripted_model", "scripted_model_server"]


@pytest.fixture(autouse=True)
def no_pace(monkeypatch):
    monkeypatch.setenv("DEMO_PACE", "0")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")
