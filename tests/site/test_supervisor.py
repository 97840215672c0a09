from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.site.processes import BASE_DIR, alive, descendants, eventually, started, supervisor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which other systems do not have")

SLEEPER = [sys.executable, "-c", "import signal, time; print('up', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]
# Like a cluster: forks that fork again, each asking to end with its parent, one of them deaf to SIGTERM.
TREE = [
    sys.executable,
    "-c",
    """
import os, signal, time
from runs.worker.parent_watch import die_with_parent
die_with_parent(only_if_supervised=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, report = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            os.write(report, b".")
            time.sleep(600)
        time.sleep(600)
os.read(ready, 1), os.read(ready, 1)
print("up", flush=True)
time.sleep(600)
""",
]
# Leaves its group and session, as a tool's process might.
STRAY = [
    sys.executable,
    "-c",
    "import subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
    "print('up', flush=True); time.sleep(600)",
]


def test_sigterm_stops_every_child_and_ends_with_status_0():
    with started(supervisor({"one": SLEEPER, "two": SLEEPER})) as parent:
        parent.wait_for_times("up", 2)
        children = descendants(parent.pid)
        os.kill(parent.pid, signal.SIGTERM)
        assert parent.end() == 0
        assert "Stopped." in parent.text
        assert len(children) == 2
        assert not any(alive(pid) for pid in children)


def test_a_child_deaf_to_sigterm_is_killed_after_the_grace():
    with started(supervisor({"deaf": STUBBORN}, "--stop-seconds", "0.3")) as parent:
        parent.wait_for("up")
        children = descendants(parent.pid)
        os.kill(parent.pid, signal.SIGINT)
        assert parent.end() == 0
        assert "deaf did not stop" in parent.text
        assert not any(alive(pid) for pid in children)


def test_a_second_signal_does_not_wait_for_the_grace():
    with started(supervisor({"deaf": STUBBORN}, "--stop-seconds", "600")) as parent:
        parent.wait_for("up")
        os.kill(parent.pid, signal.SIGINT)
        parent.wait_for("Stopping")
        os.kill(parent.pid, signal.SIGINT)
        assert parent.end() == 0


def test_killing_the_supervisor_leaves_none_of_its_descendants():
    with started(supervisor({"tree": TREE, "sleeper": SLEEPER})) as parent:
        parent.wait_for_times("up", 2)
        family = descendants(parent.pid)
        assert len(family) == 6
        os.kill(parent.pid, signal.SIGKILL)
        assert eventually(lambda: not any(alive(pid) for pid in family))


def test_killing_the_head_of_a_tree_takes_its_forks_along_and_starts_it_again():
    with started(supervisor({"tree": TREE})) as parent:
        parent.wait_for("up")
        head = next(pid for pid in descendants(parent.pid) if len(descendants(pid)) == 4)
        forks = descendants(head)
        os.kill(head, signal.SIGKILL)
        text = parent.wait_for("up\ntree stopped (killed by SIGKILL); starting again in 1 s.\nup")
        assert eventually(lambda: not any(alive(pid) for pid in forks)), text


def test_a_process_that_left_its_group_does_not_survive_an_orderly_stop():
    with started(supervisor({"leaver": STRAY})) as parent:
        parent.wait_for("up")
        family = descendants(parent.pid)
        assert len(family) == 2
        os.kill(parent.pid, signal.SIGTERM)
        assert parent.end() == 0
        assert not any(alive(pid) for pid in family)


def test_a_child_that_fails_before_all_is_ready_ends_the_start_with_status_1():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        probe = f"127.0.0.1:{silent.getsockname()[1]}"
        broken = [sys.executable, "-c", "raise SystemExit('no such module')"]
        with started(supervisor({"broken": broken, "other": SLEEPER}, "--probe", probe)) as parent:
            assert parent.end() == 1
            assert "no such module" in parent.text
            assert "broken stopped before it was ready (exit status 1)" in parent.text


def test_readiness_is_said_once_the_web_server_answers():
    server = (
        "import http.server as h\n"
        "class A(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200 if self.path == '/healthz' else 404); self.end_headers()\n"
        "import os; s = h.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), A); s.serve_forever()"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ("--probe", f"127.0.0.1:{port}", "--url", "http://here/")
    argv = supervisor({"web": [sys.executable, "-c", server]}, *arguments)
    with started(argv, {**os.environ, "PORT": str(port)}) as parent:
        assert "http://here/" in parent.wait_for("Ready after")


def test_the_supervisor_loads_nothing_but_the_standard_library_and_itself():
    show = "import sys, deerflow_site.supervisor; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(subprocess.check_output([sys.executable, "-S", "-c", show], cwd=BASE_DIR, text=True).split())
    assert loaded - set(sys.stdlib_module_names) <= {"__main__", "deerflow_site", "runs"}
