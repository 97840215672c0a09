"""A PostgreSQL server of one test's own, which may be restarted under its feet."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management import call_command
from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Iterator


def programs() -> Path | None:
    """The folder with initdb and pg_ctl; None on a machine without a server."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    found = installed[-1] if installed else Path(on_path) if on_path else None
    return found.parent if found else None


class Server:
    """Its data lie in a temporary folder; `restart` breaks every connection at once, as a crash does."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self._folder, self._binaries = folder, binaries
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder} -c fsync=off"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self._folder / "data"), *arguments]
        if os.getuid() == 0:  # the server refuses to run as root
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]
        subprocess.run(command, cwd=self._folder, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def own_server() -> Iterator[Server]:
    """A running server that is this process's default database meanwhile, migrated."""
    binaries = programs()
    assert binaries is not None, "no PostgreSQL programs: apt-get install postgresql"
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        server = Server(folder, binaries)
        server.start()
        with _as_default({"HOST": "127.0.0.1", "PORT": str(server.port), "NAME": "postgres", "USER": "postgres"}):
            call_command("migrate", verbosity=0)
            yield server
    finally:
        with contextlib.suppress(Exception):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _as_default(place: dict[str, Any]) -> Iterator[None]:
    settings = connections.settings["default"]
    before = dict(settings)
    settings.update(place)
    here = connections["default"]
    del connections["default"]
    try:
        yield
    finally:
        connections["default"].close()
        settings.clear()
        settings.update(before)
        connections["default"] = here
