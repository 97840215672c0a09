from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage

from engine.sandbox.factory import choose_sandbox
from engine.sandbox.workspace import Workspace
from engine.tools.registry import build_tools

if TYPE_CHECKING:
    from pathlib import Path

    from engine.sandbox.base import Sandbox


@dataclass
class Context:
    workspace: Workspace
    sandbox: Sandbox


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "threads" / "thread-1")


@pytest.fixture
def context(workspace: Workspace) -> Context:
    return Context(workspace, choose_sandbox("auto", allow_host_bash=False, network=False))


Call = Callable[..., Awaitable[ToolMessage]]


@pytest.fixture
def call(context: Context) -> Call:
    """Call a built-in tool as the agent's tool step does; the answer is the message the model gets."""

    async def call(name: str, **arguments: Any) -> ToolMessage:
        runtime = ToolRuntime(
            state={}, context=context, config={}, stream_writer=lambda _: None, tool_call_id="1", store=None
        )
        request = {"name": name, "args": {**arguments, "runtime": runtime}, "id": "1", "type": "tool_call"}
        return await build_tools([name])[0].ainvoke(request)

    return call
