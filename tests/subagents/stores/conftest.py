from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.subagents.conftest import WriteConfig


@pytest.fixture(params=["db", "file"])
def backend(request: pytest.FixtureRequest) -> str:
    """Every rule here holds for both."""
    return str(request.param)


@pytest.fixture
def write_config(write_config: WriteConfig, backend: str, tmp_path: Path, settings: Settings) -> WriteConfig:
    """Write the configuration of this test; definitions are kept by its backend, below a home of its own."""
    settings.DEER_FLOW_HOME = tmp_path

    def write(text: str) -> Path:
        return write_config(f"{text}\nagent_storage: {{backend: {backend}}}\n")

    write("")
    return write
