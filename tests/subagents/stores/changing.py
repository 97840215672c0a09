"""Definitions of either kind, made and changed through the services, for tests of what follows from it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import F

from subagents import services
from subagents.kinds import AGENT, SUBAGENT
from subagents.services import Actor
from subagents.stores.database import MODELS

if TYPE_CHECKING:
    from pathlib import Path

    from subagents.kinds import Kind

TESTER = Actor(label="test")

only_files = pytest.mark.parametrize("backend", ["file"])
both_kinds = pytest.mark.parametrize("kind", (SUBAGENT, AGENT), ids=lambda kind: kind.name)


def document(name: str = "scout", **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Finds {name}.", "system_prompt": "Look.", **fields}


def make(kind: Kind[Any], name: str = "scout", **fields: Any) -> Any:
    return services.create(kind, document(name, **fields), actor=TESTER)


def history(kind: Kind[Any], name: str = "scout") -> list[str]:
    return [revision.action for revision in services.revisions(kind, name)]


def change_outside(kind: Kind[Any], backend: str, home: Path, **fields: Any) -> None:
    """As a person does who edits the file, or the row, by hand."""
    if backend == "file":
        path = home / kind.folder / "scout.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    else:
        MODELS[kind.name]._default_manager.filter(name="scout").update(version=F("version") + 1, **fields)
