"""Where threads keep their files: one folder per lead thread, shared with its children."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from uuid import UUID


def workspaces_root() -> Path:
    """The folder that holds all workspaces: sandbox.workspace_root of config.yaml, else one in the home folder."""
    from subagents import registry

    configured = registry.current().config.sandbox.workspace_root
    return Path(configured).expanduser() if configured else Path(settings.DEER_FLOW_HOME) / "workspaces"


def workspace_folder(thread_id: UUID) -> Path:
    return workspaces_root() / str(thread_id)


def remove_workspace(thread_id: UUID) -> None:
    shutil.rmtree(workspace_folder(thread_id), ignore_errors=True)
