"""The tool that runs a command in the thread's workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain.tools import ToolRuntime
from pydantic import Field

from engine.sandbox.errors import SandboxError
from engine.text import clean
from engine.tools.errors import ToolFailed
from engine.tools.making import ToolContext, agent_tool

if TYPE_CHECKING:
    from engine.sandbox.base import CommandResult

TIMEOUT_SECONDS: Final = 300.0
OUTPUT_LIMIT_BYTES: Final = 30_000
MAX_COMMAND_BYTES: Final = 100_000  # the kernel takes no argument of 128 KiB or more

Runtime = ToolRuntime[Any, Any]  # its context is a ToolContext; a Protocol is no type to validate with


@agent_tool
async def bash(
    runtime: Runtime,
    command: Annotated[str, Field(description="The command or script, run by bash in the workspace.")],
    description: Annotated[str, Field(description="A few words for the person who watches.")] = "",
) -> str:
    """Run a bash command in the workspace and answer its output, standard error included, and its exit code.

    Files in the workspace stay; everything else, background processes and /tmp too, ends
    with the call. Nothing can be typed into the command. It is stopped after 300 seconds.
    """
    del description  # for whoever shows the call; the command does not need it
    if not command.strip():
        raise ToolFailed("The command is empty.")
    if clean(command) != command:
        raise ToolFailed("The command holds characters that no command line can carry.")
    if len(command.encode()) > MAX_COMMAND_BYTES:
        raise ToolFailed(
            f"The command is longer than {MAX_COMMAND_BYTES} bytes. Write it to a file with write_file and run that."
        )
    context: ToolContext = runtime.context
    try:
        result = await context.sandbox.run(
            command,
            workspace=context.workspace.root,
            timeout_seconds=TIMEOUT_SECONDS,
            output_limit=OUTPUT_LIMIT_BYTES,
        )
    except SandboxError as error:
        raise ToolFailed(f"The command was not run. {error}") from error
    except OSError as error:
        raise ToolFailed(f"The command could not be started: {error.strerror or 'system error'}.") from error
    return _report(result)


def _report(result: CommandResult) -> str:
    lines = [result.output.rstrip("\n")] if result.output.strip() else ["(no output)"]
    if result.stopped_because:
        lines.append(f"[stopped: {result.stopped_because}]")
    elif result.exit_code:
        lines.append(f"[exit code {result.exit_code}]")
    return "\n".join(lines)
