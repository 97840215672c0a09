from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access import allowance
from subagents.api import examples
from tests.access.calling import Api, caller

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.subagents.conftest import WriteConfig

_VERBS = ("view", "add", "change", "delete")
EVERYTHING = (*(f"{verb}_{model}" for verb in _VERBS for model in ("managedsubagent", "customagent")), "view_prompt")


@pytest.fixture(params=["db", "file"])
def backend(
    request: pytest.FixtureRequest, write_config: WriteConfig, db: None, tmp_path: Path, settings: Settings
) -> str:
    """Where definitions are kept; the configuration says nothing else."""
    settings.DEER_FLOW_HOME = tmp_path
    write_config(f"agent_storage: {{backend: {request.param}}}")
    return str(request.param)


@pytest.fixture
def api(write_config: WriteConfig, db: None) -> Api:
    """Somebody who may do everything with definitions."""
    return caller(*EVERYTHING)


@pytest.fixture(autouse=True)
def full_allowance() -> None:
    allowance.forget()


@pytest.fixture
def make(api: Api) -> Callable[..., dict[str, Any]]:
    """Create a subagent over the API; fields not given are those of the example."""

    def create(name: str, path: str = "/subagents", **fields: Any) -> dict[str, Any]:
        document = examples.DOCUMENT if path == "/subagents" else examples.AGENT_DOCUMENT
        answer = api("POST", path, {**document, "name": name, **fields})
        assert answer.status_code == 201, answer.content
        made: dict[str, Any] = answer.json()
        return made

    return create
