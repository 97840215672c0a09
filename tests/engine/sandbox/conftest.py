from __future__ import annotations

import asyncio
import os
import select
from pathlib import Path

import pytest

from engine.sandbox.base import CommandLimits, CommandResult, Sandbox
from engine.sandbox.bubblewrap import BubblewrapSandbox
from engine.sandbox.local import LocalSandbox
from engine.sandbox.workspace import Workspace
from tests.patience import PATIENCE_SECONDS

NOT_INSTALLED = "bubblewrap is not installed: apt-get install bubblewrap"
SMALL = CommandLimits(
    memory_bytes=200 << 20, processes=40, output_bytes=1 << 20, file_bytes=8 << 20, scratch_bytes=4 << 20
)


def isolating_sandbox(limits: CommandLimits | None = None, *, network: bool = False) -> BubblewrapSandbox:
    if not Path("/usr/bin/bwrap").exists():
        pytest.skip(NOT_INSTALLED)
    sandbox = BubblewrapSandbox(network=network, limits=limits)
    availability = sandbox.available()
    assert availability.ok, availability.reason
    return sandbox


@pytest.fixture
def isolated() -> Sandbox:
    return isolating_sandbox(SMALL)


@pytest.fixture(params=["bubblewrap", "local"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each provider in turn, for the rules that hold for both."""
    if request.param == "bubblewrap":
        return isolating_sandbox(SMALL)
    return LocalSandbox(allow_host_bash=True, limits=SMALL)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path / "threads" / "thread-1")
    found.prepare()
    return found


async def run(
    sandbox: Sandbox, workspace: Workspace, command: str, *, seconds: float = 20, output_limit: int = 10_000
) -> CommandResult:
    return await sandbox.run(command, workspace=workspace.root, timeout_seconds=seconds, output_limit=output_limit)


class Lifeline:
    """A named pipe that a command's processes hold open: its end is the end of all of them."""

    HOLD = "exec 7>lifeline; echo up >&7; "

    def __init__(self, workspace: Workspace) -> None:
        path = workspace.root / "lifeline"
        os.mkfifo(path, 0o666)
        path.chmod(0o666)
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait_until_up(self, seconds: float = PATIENCE_SECONDS) -> None:
        assert select.select([self.fd], [], [], seconds)[0], "the command did not start"
        assert os.read(self.fd, 3) == b"up\n"

    async def up(self) -> None:
        await asyncio.to_thread(self.wait_until_up)

    def is_cut(self, seconds: float = 0) -> bool:
        """Whether nobody holds the pipe any more, waiting for that at most `seconds`."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        while os.read(self.fd, 100):
            pass
        return True


@pytest.fixture
def lifeline(workspace: Workspace):
    line = Lifeline(workspace)
    yield line
    os.close(line.fd)
