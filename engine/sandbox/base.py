"""The protocol every sandbox provider fulfils."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether commands can run; `reason` is a plain sentence and is never empty when `ok` is false."""

    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How one command ended.

    `exit_code` is the shell's (128 + n for signal n), None when the sandbox stopped the command;
    `stopped_because` then says why. `output` is stdout and stderr as they came, storable text.
    """

    exit_code: int | None
    output: str
    truncated: bool = False
    timed_out: bool = False
    stopped_because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLimits:
    """What one command may use before it is refused more or stopped.

    `memory_bytes`, `processes` and `output_bytes` count all of the command's processes together;
    `file_bytes` and `open_files` hold for each; `scratch_bytes` for /tmp and /dev/shm each.
    """

    memory_bytes: int = 1 << 30
    processes: int = 128
    output_bytes: int = 64 << 20
    file_bytes: int = 256 << 20
    open_files: int = 512
    scratch_bytes: int = 128 << 20


class Sandbox(Protocol):
    """Runs shell commands in a workspace and lets nothing of them outlive the call."""

    def available(self) -> Availability:
        """Prove by a real command that commands can run; asked of the system once per process."""
        ...

    async def run(self, command: str, *, workspace: Path, timeout_seconds: float, output_limit: int) -> CommandResult:
        """Run `command` with bash in `workspace`; `output_limit` is in bytes of kept output.

        Raises SandboxUnavailable when no command may run. Cancelling ends every process first.
        """
        ...
