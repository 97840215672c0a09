"""Runs commands on the host itself, for operators who said so. It bounds commands, it does not isolate."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import subprocess
import uuid
from typing import TYPE_CHECKING, Final

from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from engine.sandbox.base import Availability, CommandLimits, CommandResult
from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.execution import Launch, close_all, execute, limited_shell
from engine.sandbox.processes import CHILDREN_NOT_LISTED, children_are_listed
from engine.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

SWITCHED_OFF: Final = _("Commands on the host are switched off (sandbox.allow_host_bash is false).")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MARK_NAME: Final = "SANDBOX_COMMAND"
_PROBE_TIMEOUT_SECONDS: Final = 10
# Beside each command waits a guard, on a pipe whose other end only this process holds: when this process is gone,
# however it went, it ends whatever has the command's mark, and then the command's process group with itself. One look
# is not enough: a process may be made after the list was read, and one that just starts a program shows no mark.
_GUARD: Final = f"""\
read -r _
mark="{_MARK_NAME}=${_MARK_NAME}"
unset {_MARK_NAME}
unseen=0
while [ "$unseen" -lt 3 ]; do
  unseen=$((unseen + 1))
  for seen in $(grep -lsaF -- "$mark" /proc/[0-9]*/environ); do
    pid=${{seen#/proc/}}; pid=${{pid%/environ}}
    [ "$pid" = "$$" ] || {{ kill -KILL "$pid" && unseen=0; }}
  done
  sleep 0.1
done
kill -KILL 0
"""
_BASH: Final = ("/bin/bash", "--noprofile", "--norc", "-c")
# A guard is no child of the command, which could wait for it otherwise.
_GUARDED: Final = (
    'pipe=$1 guard=$2; shift 2; (/bin/sh -c "$guard" guard <&"$pipe" >/dev/null 2>&1 &); exec {pipe}<&-; exec "$@"'
)


class LocalSandbox:
    """The host provider: process group, limits, clean environment, and an explicit opt-in."""

    def __init__(self, *, allow_host_bash: bool, limits: CommandLimits | None = None) -> None:
        self._allow_host_bash = allow_host_bash
        self._limits = limits or CommandLimits()

    def available(self) -> Availability:
        if not self._allow_host_bash:
            return Availability(ok=False, reason=Reason(SWITCHED_OFF))
        return _probe()

    async def run(self, command: str, *, workspace: Path, timeout_seconds: float, output_limit: int) -> CommandResult:
        availability = await asyncio.to_thread(self.available)
        if not availability.ok:
            raise SandboxUnavailable(availability.reason)
        await asyncio.to_thread(Workspace(workspace).prepare)
        # The kernel counts processes per user, which on the host is the service itself; here
        # only the watch over the command's own processes bounds their number.
        shell = limited_shell(self._limits, cpu_seconds=math.ceil(timeout_seconds) + 1, count_processes=False)
        mark = uuid.uuid4().hex
        guard_end, own_end = os.pipe()
        launch = Launch(
            argv=[
                "/bin/bash",
                "--noprofile",
                "--norc",
                "-c",
                _GUARDED,
                "bash",
                str(guard_end),
                _GUARD,
                *shell(command),
            ],
            pass_fds=(guard_end,),
            environment={"PATH": _PATH, "HOME": str(workspace), "LANG": "C.UTF-8", _MARK_NAME: mark},
            folder=workspace,
            mark=f"{_MARK_NAME}={mark}".encode(),
        )
        try:
            return await execute(
                launch, timeout_seconds=timeout_seconds, output_limit=output_limit, limits=self._limits
            )
        finally:
            close_all((guard_end, own_end))


class NoSandbox:
    """Stands where no provider may run commands, and says why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def available(self) -> Availability:
        return Availability(ok=False, reason=self._reason)

    async def run(self, command: str, *, workspace: Path, timeout_seconds: float, output_limit: int) -> CommandResult:
        raise SandboxUnavailable(self._reason)


@functools.cache
def _probe() -> Availability:
    if not children_are_listed():
        return Availability(ok=False, reason=CHILDREN_NOT_LISTED)
    shell = limited_shell(CommandLimits(), cpu_seconds=_PROBE_TIMEOUT_SECONDS, count_processes=False)
    try:
        answer = subprocess.run(
            shell("printf works"),
            env={"PATH": _PATH},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Availability(ok=False, reason=Reason(_("A trial command could not be run: %(error)s."), error=error))
    if answer.stdout == b"works":
        return Availability(ok=True)
    sentence = _("A trial command failed with exit code %(code)s.")
    return Availability(ok=False, reason=Reason(sentence, code=answer.returncode))
