"""How a coroutine becomes a tool: one way of failing, one way of blocking, one bound in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeVar

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BeforeValidator

from engine.sandbox.errors import SandboxError
from engine.text import clean_json
from engine.tools.errors import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from engine.sandbox.base import Sandbox
    from engine.sandbox.workspace import Workspace

FILE_TIMEOUT_SECONDS: Final = 30.0
Answer = TypeVar("Answer")


# Models write halves of characters now and then. The schema would refuse the whole call for one.
Text = Annotated[str, BeforeValidator(clean_json)]


class ToolContext(Protocol):
    """What tools take from the run's context."""

    workspace: Workspace
    sandbox: Sandbox


def agent_tool(function: Callable[..., Awaitable[str]]) -> BaseTool:
    """Make a tool of a coroutine function: its name, docstring and annotations are what the model reads.

    ToolFailed becomes the tool's result, marked as an error.
    """
    return StructuredTool.from_function(coroutine=function, handle_tool_error=True)


async def in_thread(work: Callable[..., Answer], *arguments: Any, path: str) -> Answer:
    """Run blocking file work in a thread; `path` is what its failure is about, as the model wrote it.

    Raises ToolFailed for whatever the workspace or the disk refuses, and after 30 s. The
    thread cannot be stopped then, but the run goes on without it.
    """
    try:
        async with asyncio.timeout(FILE_TIMEOUT_SECONDS):
            return await asyncio.to_thread(work, *arguments)
    except SandboxError as error:
        raise ToolFailed(str(error)) from error
    except FileNotFoundError as error:
        raise ToolFailed(f'"{path}" does not exist.') from error
    except TimeoutError as error:
        raise ToolFailed(f'"{path}" took longer than {FILE_TIMEOUT_SECONDS:g} s.') from error
    except OSError as error:
        # Not the error's own text: it may name the host's folders.
        raise ToolFailed(f'"{path}" could not be used: {error.strerror or "input/output error"}.') from error
