from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from subagents import registry
from subagents.definitions import Definition
from subagents.kinds import SUBAGENT
from subagents.services import Actor, create

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

WriteConfig = Callable[[str], Path]
SaveManaged = Callable[..., Definition]


@pytest.fixture(autouse=True)
def forgetful_registry() -> Iterator[None]:
    """A test must not see what another one's rolled back transaction left in this process's memory."""
    registry.forget()
    yield
    registry.forget()


@pytest.fixture
def write_config(tmp_path: Path, settings: Settings) -> WriteConfig:
    """Write the configuration file of this test and make it the one in force."""
    path = tmp_path / "config.yaml"
    settings.CONFIG_FILE = path

    def write(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        registry.forget()
        return path

    write("")
    return write


@pytest.fixture
def managed(write_config: WriteConfig, db: None) -> SaveManaged:
    """Store a managed definition; fields not given are plain."""

    def save(name: str, **fields: Any) -> Definition:
        written = {"name": name, "description": f"Does {name}.", "system_prompt": f"You are {name}.", **fields}
        return create(SUBAGENT, written, actor=Actor(label="test"))

    return save
