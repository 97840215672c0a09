"""What a command behind bubblewrap can reach: its workspace, and nothing of the service."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.sandbox.workspace import SANDBOX_UID, Workspace
from tests.engine.sandbox.conftest import NOT_INSTALLED, isolating_sandbox, run
from tests.patience import PATIENCE_SECONDS

PROJECT = Path(__file__).resolve().parents[3]


async def test_a_command_works_in_the_threads_workspace(isolated, workspace):
    workspace.write("notes.txt", b"from the file tool\n")
    result = await run(isolated, workspace, "pwd; cat notes.txt; echo from bash >> notes.txt; echo $HOME")
    assert (result.exit_code, result.output) == (0, "/workspace\nfrom the file tool\n/workspace\n")
    assert workspace.read("notes.txt") == b"from the file tool\nfrom bash\n"


async def test_the_root_shows_the_system_and_the_workspace_only(isolated, workspace):
    names = set((await run(isolated, workspace, "ls -A /")).output.split())
    assert names <= {
        "bin",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "proc",
        "sbin",
        "tmp",
        "usr",
        "workspace",
    }


async def test_the_project_folder_cannot_be_read(isolated, workspace):
    result = await run(isolated, workspace, f"ls {PROJECT}; cat {PROJECT}/engine/text.py")
    assert result.exit_code == 1
    assert result.output.count("No such file") == 2


async def test_a_file_beside_the_workspace_cannot_be_read(isolated, workspace, tmp_path):
    canary = tmp_path / "canary.txt"
    canary.write_text("CANARY-41")
    attempts = f"cat {canary}; cat ../canary.txt ../../canary.txt; ln -s {canary} l; cat l; "
    attempts += f"cat /proc/1/root{canary}; (cd .. && cat canary.txt); "
    attempts += f"cat $(echo ../canary.txt); ln -s / r; cat r{canary}"
    result = await run(
        isolated,
        workspace,
        f"{attempts}; find / -path /usr -prune -o -path /proc -prune -o -name canary.txt -print",
    )
    assert "CANARY-41" not in result.output
    assert "No such file" in result.output


async def test_another_threads_workspace_cannot_be_read_or_written(isolated, workspace):
    other = Workspace(workspace.root.parent / "thread-2")
    other.write("secret.txt", b"OTHER-42")
    result = await run(
        isolated, workspace, f"cat {other.root}/secret.txt; cat ../thread-2/secret.txt; touch {other.root}/x"
    )
    assert "OTHER-42" not in result.output
    assert [found.path for found in other.listing()] == ["secret.txt"]


async def test_the_services_environment_cannot_be_read(isolated, workspace, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "ENV-43")
    result = await run(isolated, workspace, "env; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/*/cmdline; set")
    assert result.exit_code == 0
    assert "ENV-43" not in result.output


async def test_no_process_of_the_host_is_seen(isolated, workspace):
    result = await run(isolated, workspace, f"ls /proc | grep -c '^[0-9]'; kill -0 {os.getpid()}")
    assert int(result.output.split()[0]) < 10
    assert result.exit_code == 1


async def test_a_server_on_the_hosts_loopback_cannot_be_reached(isolated, workspace):
    connections: asyncio.Queue[str] = asyncio.Queue()

    def count(_reader, writer):
        connections.put_nowait("came")
        writer.close()

    server = await asyncio.start_server(count, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        attempt = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
        refused = await run(isolated, workspace, attempt)
        assert connections.empty()
        allowed = await run(isolating_sandbox(network=True), workspace, attempt)
        await asyncio.wait_for(connections.get(), PATIENCE_SECONDS)
    assert "connected" not in refused.output
    assert allowed.output == "connected\n"


async def test_nothing_but_the_workspace_and_bounded_scratch_space_can_be_written(isolated, workspace):
    tries = "for f in / /usr /etc /dev /proc/sys; do touch $f/x 2>/dev/null && echo wrote $f; done"
    result = await run(
        isolated, workspace, f"{tries}; head -c 100M /dev/zero > /tmp/a; head -c 100M /dev/zero > /dev/shm/a"
    )
    assert "wrote" not in result.output
    assert result.output.count("No space left on device") == 2


async def test_a_command_has_no_privilege_and_cannot_get_one(isolated, workspace):
    result = await run(
        isolated,
        workspace,
        "id -u; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; "
        "unshare --user true && echo nested; mount -t tmpfs t /workspace && echo mounted",
    )
    lines = result.output.split("\n")
    assert lines[0] == "1000"
    assert set(lines[1].split()[1]) == {"0"}
    assert lines[2].split()[1] == "1"
    assert "nested" not in lines
    assert "mounted" not in lines


async def test_memory_that_no_process_owns_and_key_rings_are_refused(isolated, workspace):
    if not Path("/usr/bin/python3").exists():
        pytest.skip("needs the system's own python3: apt-get install python3")
    program = (
        "import ctypes, ctypes.util, errno, os\n"
        "try: os.memfd_create('m')\n"
        "except OSError as e: print(errno.errorcode[e.errno])\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.shmget(0, 4096, 0o1600), errno.errorcode[ctypes.get_errno()])\n"
    )
    workspace.write("try.py", program.encode())
    assert (await run(isolated, workspace, "python3 try.py")).output == "ENOSYS\n-1 ENOSYS\n"


async def test_a_service_that_is_root_never_runs_a_command_as_root(isolated, workspace):
    if os.geteuid() != 0:
        pytest.skip("this run is not root, so there is nothing to drop")
    await run(isolated, workspace, "touch mine; mkdir folder")
    status = (workspace.root / "mine").stat()
    assert (status.st_uid, status.st_gid) == (SANDBOX_UID, SANDBOX_UID)


async def test_files_root_has_left_in_a_workspace_are_handed_to_the_command(isolated, workspace):
    if os.geteuid() != 0:
        pytest.skip("this run is not root, so there is nothing to hand over")
    os.chown(workspace.root, 0, 0)
    (workspace.root / "deep").mkdir(mode=0o700)
    (workspace.root / "deep" / "old.txt").write_text("old")
    (workspace.root / "out").symlink_to("/etc/hostname")
    owner_outside = Path("/etc/hostname").stat().st_uid
    assert (await run(isolated, workspace, "echo new >> deep/old.txt")).exit_code == 0
    assert Path("/etc/hostname").stat().st_uid == owner_outside


async def test_the_same_isolation_holds_for_a_service_that_is_not_root(tmp_path):
    if not Path("/usr/bin/bwrap").exists():
        pytest.skip(NOT_INSTALLED)
    if os.geteuid() != 0:
        pytest.skip("this whole run is not root, so the other tests prove it")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, SANDBOX_UID, SANDBOX_UID)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    program = (
        "import asyncio, concurrent.futures.thread, encodings.utf_16_le, os, sys, tempfile\n"
        "from pathlib import Path\n"
        "from engine.sandbox.bubblewrap import BubblewrapSandbox\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534); os.environ['SECRET'] = 'ENV-44'\n"
        "sandbox = BubblewrapSandbox(network=False)\n"
        "print(sandbox.available())\n"
        'run = sandbox.run(\'id -u; touch made; ls; ls -A / | tr "\\\\n" " "; cat /proc/*/environ\','
        " workspace=Path(sys.argv[1]), timeout_seconds=10, output_limit=5000)\n"
        "print(asyncio.run(run).output)\n"
    )
    script = tmp_path / "program.py"
    script.write_text(program)
    answer = subprocess.run(
        [sys.executable, str(script), str(home / "thread")],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PROJECT), "PATH": os.environ["PATH"]},
        timeout=30,
        check=False,
    )
    assert "ok=True" in answer.stdout, answer.stdout + answer.stderr
    assert "1000\nmade\n" in answer.stdout
    assert "ENV-44" not in answer.stdout
