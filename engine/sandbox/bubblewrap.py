"""Runs commands behind bubblewrap: own namespaces, a read-only system, one writable folder."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import re
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from engine.sandbox.base import Availability, CommandLimits, CommandResult
from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.execution import Launch, close_all, execute, limited_shell
from engine.sandbox.processes import CHILDREN_NOT_LISTED, children_are_listed
from engine.sandbox.seccomp import build_filter, machine_is_known
from engine.sandbox.workspace import SANDBOX_UID, VISIBLE_ROOT, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PROGRAM: Final = Path("/usr/bin/bwrap")
_OLDEST_VERSION: Final = (0, 8)  # the first that can forbid further user namespaces
_PROBE_TIMEOUT_SECONDS: Final = 10
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT: Final = {
    "PATH": _PATH,
    "HOME": VISIBLE_ROOT,
    "USER": "agent",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
}
_USER_ID: Final = "1000"
_PASSWD: Final = b"agent:x:1000:1000::/workspace:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
_GROUP: Final = b"agent:x:1000:\nnogroup:x:65534:\n"
_SYSTEM_LINKS: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl/certs", "ssl/openssl.cnf")
_ETC_WITH_NETWORK: Final = ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf")
# Where people put applications below /usr, which is otherwise shown whole.
_HIDDEN: Final = (Path("/usr/src"), Path("/usr/local/src"))
# A service that runs as root keeps its folders to itself, and whoever it drops to could not
# even walk down to a workspace. So root shows that one folder at a fixed place, in a mount
# namespace of its own, and gives up its identity before bubblewrap or the command start.
_DROP_SCRIPT: Final = (
    'mount --bind -- "$1" /mnt && shift && exec setpriv --reuid "$1" --regid "$1" '
    '--clear-groups --inh-caps=-all -- "${@:2}"'
)
_MOUNTED_WORKSPACE: Final = Path("/mnt")


class BubblewrapSandbox:
    """The isolating provider. Holds also when the service runs as root."""

    def __init__(self, *, network: bool, limits: CommandLimits | None = None) -> None:
        self._network = network
        self._limits = limits or CommandLimits()

    def available(self) -> Availability:
        return _probe(self._network)

    async def run(self, command: str, *, workspace: Path, timeout_seconds: float, output_limit: int) -> CommandResult:
        availability = await asyncio.to_thread(self.available)
        if not availability.ok:
            raise SandboxUnavailable(availability.reason)
        await asyncio.to_thread(Workspace(workspace).prepare)
        shell = limited_shell(self._limits, cpu_seconds=math.ceil(timeout_seconds) + 1, count_processes=True)
        with _launch(shell(command), workspace, self._network, self._limits) as launch:
            return await execute(
                launch, timeout_seconds=timeout_seconds, output_limit=output_limit, limits=self._limits
            )


@contextmanager
def _launch(command: Sequence[str], workspace: Path, network: bool, limits: CommandLimits) -> Iterator[Launch]:
    """Yield how to start `command`; the descriptors it names are open only inside the block."""
    fds: list[int] = []
    try:
        fds.extend(_readable(content) for content in (build_filter(), _PASSWD, _GROUP))
        fds.extend(reversed(os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)))
        *passed, init_fd = fds
        is_root = os.geteuid() == 0
        argv = _arguments(_MOUNTED_WORKSPACE if is_root else workspace, passed, network=network, limits=limits) + list(
            command
        )
        if is_root:
            argv = [
                *("unshare", "--mount", "--propagation", "private", "--"),
                *("/bin/bash", "--noprofile", "--norc", "-c", _DROP_SCRIPT, "bash"),
                *(str(workspace), str(SANDBOX_UID)),
                *argv,
            ]
        # The innermost first process shows the environment it was born with, so that must be clean too.
        yield Launch(
            argv=argv,
            environment={"PATH": _PATH},
            folder=Path("/"),
            pass_fds=tuple(passed),
            init_fd=init_fd,
        )
    finally:
        close_all(fds)


def _arguments(source: Path, fds: Sequence[int], *, network: bool, limits: CommandLimits) -> list[str]:
    filter_fd, passwd_fd, group_fd, info_fd = map(str, fds)
    scratch = str(limits.scratch_bytes)
    return [
        str(_PROGRAM),
        *("--unshare-all", "--unshare-user", "--disable-userns", "--uid", _USER_ID, "--gid", _USER_ID),
        *(("--share-net",) if network else ()),
        *("--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"),
        *("--seccomp", filter_fd, "--info-fd", info_fd),
        *_system_arguments(network=network),
        *("--ro-bind-data", passwd_fd, "/etc/passwd", "--ro-bind-data", group_fd, "/etc/group"),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--size", scratch, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
        *("--perms", "1777", "--size", scratch, "--tmpfs", "/tmp"),
        *("--bind", str(source), VISIBLE_ROOT, "--chdir", VISIBLE_ROOT),
        # The root itself is memory; left writable, it would be a disk without a limit.
        *("--remount-ro", "/", "--clearenv"),
        *(word for name, value in _ENVIRONMENT.items() for word in ("--setenv", name, value)),
        "--",
    ]


@functools.cache
def _system_arguments(*, network: bool) -> tuple[str, ...]:
    """The part of the machine every command sees: programs and libraries, nothing of the service."""
    words = ["--ro-bind", "/usr", "/usr"]
    for hidden in _hidden_folders():
        words += ["--tmpfs", str(hidden), "--remount-ro", str(hidden)]
    for name in _SYSTEM_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            words += ["--ro-bind", str(path), str(path)]
    for name in _ETC + (_ETC_WITH_NETWORK if network else ()):
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return tuple(words)


def _hidden_folders() -> list[Path]:
    project = Path(__file__).resolve().parents[2]
    candidates = {*_HIDDEN, project, Path.cwd()}
    visible = [path for path in candidates if path.is_dir() and Path("/usr") in path.parents]
    return [path for path in visible if not any(other in path.parents for other in visible)]


def _readable(content: bytes) -> int:
    """Return a descriptor from which `content`, at most a pipe's worth, can be read to its end."""
    reading, writing = os.pipe()
    try:
        os.write(writing, content)
    finally:
        os.close(writing)
    return reading


@functools.cache
def _probe(network: bool) -> Availability:
    missing = _missing()
    if missing:
        return Availability(ok=False, reason=missing)
    limits = CommandLimits()
    shell = limited_shell(limits, cpu_seconds=_PROBE_TIMEOUT_SECONDS, count_processes=True)
    command = shell("touch probe && rm probe && printf works")
    try:
        with tempfile.TemporaryDirectory(prefix="sandbox-probe-") as folder:
            workspace = Path(folder, "workspace")
            Workspace(workspace).prepare()
            # mkdtemp keeps its folder to its owner, as a careful administrator does.
            with _launch(command, workspace, network, limits) as launch:
                answer = subprocess.run(
                    list(launch.argv),
                    env=dict(launch.environment),
                    cwd=launch.folder,
                    pass_fds=launch.pass_fds,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_PROBE_TIMEOUT_SECONDS,
                    check=False,
                )
    except (OSError, subprocess.SubprocessError) as error:
        return Availability(
            ok=False, reason=Reason(_("A trial command in the sandbox could not be run: %(error)s."), error=error)
        )
    if answer.stdout == b"works":
        return Availability(ok=True)
    said = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    last = said[-1] if said else Reason(_("exit code %(code)s"), code=answer.returncode)
    return Availability(ok=False, reason=Reason(_("A trial command in the sandbox failed: %(error)s."), error=last))


def _missing() -> str:
    """Return a sentence about the first thing this machine lacks; empty when it lacks nothing."""
    if not _PROGRAM.exists():
        return Reason(_("bubblewrap is not installed (apt-get install bubblewrap)."))
    if not machine_is_known():
        sentence = _("The sandbox has no system call filter for this kind of machine (%(machine)s).")
        return Reason(sentence, machine=os.uname().machine)
    if not children_are_listed():
        return CHILDREN_NOT_LISTED
    try:
        said = subprocess.run(
            [str(_PROGRAM), "--version"],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Reason(_("bubblewrap could not be started: %(error)s."), error=error)
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST_VERSION:
        sentence = _("bubblewrap 0.8 or newer is needed, found %(version)s.")
        return Reason(sentence, version=said.strip() or Reason(_("no version")))
    return ""
