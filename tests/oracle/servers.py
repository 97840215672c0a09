"""Both servers as processes of their own, with the same graph."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.house import NAME, House
from tests.scripted_model import ScriptedModel
from tests.site.processes import Spoken, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPHS = Path(__file__).parent / "graphs"
_START_SECONDS = 120


@contextlib.contextmanager
def ours(folder: Path) -> Iterator[tuple[str, str]]:
    """The URL and a key of an installation started by `manage.py up`."""
    folder.mkdir(parents=True)
    for file in GRAPHS.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    environment = {name: value for name, value in os.environ.items() if name != "DEER_FLOW_CONFIG"}
    with ScriptedModel() as model:
        house = House.start(folder, environment, model.url)
        try:
            key = house.manage("apikeys", "create", "--user", NAME, "--scope", "run").split()
            yield f"{house.url}/langgraph", next(word for word in key if word.startswith("sa_"))
        finally:
            house.stop()


@contextlib.contextmanager
def reference(folder: Path, program: str) -> Iterator[tuple[str, str]]:
    """`langgraph dev`, without its browser, its tracing and its reloading."""
    shutil.copytree(GRAPHS, folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_API_KEY": ""}
    argv = [str(Path(program).absolute()), "dev", "--port", str(port), "--no-browser", "--no-reload"]
    # Into a file: nobody reads what it says, and a full pipe would stop it.
    started = ["/bin/sh", "-c", 'cd "$0" && exec "$@" >server.log 2>&1', str(folder), *argv]
    server = Spoken(started, {**os.environ, **quiet})
    try:
        if not eventually(lambda: _answers(f"http://127.0.0.1:{port}/ok"), _START_SECONDS):
            raise AssertionError(f"langgraph dev does not answer: {(folder / 'server.log').read_text('utf-8')}")
        yield f"http://127.0.0.1:{port}", ""
    finally:
        server.close()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
