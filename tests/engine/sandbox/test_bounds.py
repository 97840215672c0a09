"""What a command may use, and that nothing of it outlives the call. Rules for both providers unless said."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.factory import choose_sandbox
from engine.sandbox.local import LocalSandbox, NoSandbox
from tests.engine.sandbox.conftest import isolating_sandbox, run
from tests.patience import PATIENCE_SECONDS

PROJECT = Path(__file__).resolve().parents[3]


async def test_the_exit_code_and_both_streams_come_back(sandbox, workspace):
    result = await run(sandbox, workspace, "echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.output, result.stopped_because) == (3, "out\nerr\n", "")


async def test_a_command_ended_by_a_signal_has_the_shells_code_for_it(sandbox, workspace):
    assert (await run(sandbox, workspace, "kill -KILL $$")).exit_code == 128 + signal.SIGKILL


async def test_nothing_can_be_typed_into_a_command(sandbox, workspace):
    assert (await run(sandbox, workspace, "read x || echo closed", seconds=5)).output == "closed\n"


async def test_output_that_is_not_text_comes_back_as_storable_text(sandbox, workspace):
    result = await run(sandbox, workspace, r"printf 'a\0b\xff\xed\xa0\x80z 中'")
    assert result.output.startswith("a\ufffdb\ufffd")
    assert result.output.endswith("z 中")
    assert "\x00" not in result.output


async def test_long_output_keeps_its_head_and_tail_and_says_what_is_missing(sandbox, workspace):
    result = await run(sandbox, workspace, "echo first; seq 20000; echo last", output_limit=1_000)
    assert result.truncated
    assert result.output.startswith("first\n1\n")
    assert result.output.endswith("20000\nlast\n")
    assert "bytes cut" in result.output
    assert len(result.output) < 1_100


async def test_a_command_that_sleeps_for_ever_is_ended_on_time_with_what_it_said(sandbox, workspace, lifeline):
    started = time.monotonic()
    result = await run(sandbox, workspace, lifeline.HOLD + "echo before; sleep 1000", seconds=0.5)
    assert time.monotonic() - started < PATIENCE_SECONDS
    assert (result.exit_code, result.timed_out, result.output) == (None, True, "before\n")
    assert "0.5 s" in result.stopped_because
    assert lifeline.is_cut()


async def test_a_command_that_ignores_signals_is_ended_on_time_too(sandbox, workspace, lifeline):
    stubborn = "trap '' TERM INT HUP; while :; do sleep 1000; done"
    assert (await run(sandbox, workspace, lifeline.HOLD + stubborn, seconds=0.5)).timed_out
    assert lifeline.is_cut()


async def test_cancelling_ends_every_process_before_it_returns(sandbox, workspace, lifeline):
    task = asyncio.create_task(run(sandbox, workspace, lifeline.HOLD + "setsid sleep 1000 & sleep 1000"))
    await lifeline.up()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lifeline.is_cut()


async def test_a_background_process_does_not_outlive_the_command_nor_hold_it_up(sandbox, workspace, lifeline):
    started = time.monotonic()
    command = "(exec 7>lifeline; setsid nohup sleep 1000 & (sleep 1000 &) ); echo done"
    result = await run(sandbox, workspace, command)
    assert (result.exit_code, result.output) == (0, "done\n")
    assert time.monotonic() - started < PATIENCE_SECONDS
    assert lifeline.is_cut()


async def test_endless_output_is_stopped(sandbox, workspace):
    result = await run(sandbox, workspace, "yes", output_limit=500)
    assert result.exit_code is None
    assert result.stopped_because == "it printed more than 1 MiB"
    assert len(result.output) < 600


async def test_a_crowd_of_processes_is_bounded_and_gone_afterwards(sandbox, workspace, lifeline):
    crowd = "for i in $(seq 200); do sleep 1000 & done 2>/dev/null; wait"
    result = await run(sandbox, workspace, lifeline.HOLD + crowd, seconds=3)
    assert result.exit_code != 0
    assert lifeline.is_cut()


async def test_a_fork_bomb_is_bounded_by_the_isolating_sandbox(isolated, workspace, lifeline):
    bomb = lifeline.HOLD + "bomb() { bomb | bomb & }; bomb; sleep 1000"
    result = await run(isolated, workspace, bomb, seconds=1.5)
    assert result.exit_code is None or result.exit_code != 0
    assert lifeline.is_cut()


async def test_memory_of_all_processes_together_is_bounded(sandbox, workspace, lifeline):
    # Each stays below what one process may take; only their sum is too much.
    hog = "head -c 60M /dev/zero | tail -c 60M | (sleep 1000; cat) & "
    result = await run(sandbox, workspace, lifeline.HOLD + hog * 6 + "wait", seconds=20)
    assert result.stopped_because == "it used more than 200 MiB of memory"
    assert lifeline.is_cut()


async def test_memory_of_one_process_is_bounded(sandbox, workspace):
    result = await run(sandbox, workspace, "head -c 900M /dev/zero | tail -c 900M | wc -c; echo ${PIPESTATUS[1]}")
    assert "943718400" not in result.output


async def test_the_size_of_a_file_is_bounded(sandbox, workspace):
    await run(sandbox, workspace, "head -c 100M /dev/zero > big")
    assert (workspace.root / "big").stat().st_size == 8 << 20


async def test_many_commands_run_side_by_side_without_mixing(sandbox, workspace):
    results = await asyncio.gather(*(run(sandbox, workspace, f"echo {n}; exit {n}") for n in range(12)))
    assert [(r.exit_code, r.output) for r in results] == [(n, f"{n}\n") for n in range(12)]


async def test_no_descriptor_is_left_open(sandbox, workspace):
    await run(sandbox, workspace, "true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await run(sandbox, workspace, "true")
    await run(sandbox, workspace, "sleep 100", seconds=0.1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("setsid sleep 1000 & sleep 1000", id="waiting"),
        pytest.param("while setsid sh -c 'exec sleep 1000' & do sleep 0.01; done", id="starting-more-and-more"),
    ],
)
@pytest.mark.parametrize(
    "provider", ["bubblewrap:BubblewrapSandbox(network=False)", "local:LocalSandbox(allow_host_bash=True)"]
)
async def test_a_command_ends_with_the_process_that_ran_it(provider, command, workspace, lifeline):
    isolating_sandbox()
    module, _, made = provider.partition(":")
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        f"from engine.sandbox.{module} import *\n"
        f"run = {made}.run\n"
        "asyncio.run(run(sys.argv[2], workspace=Path(sys.argv[1]), timeout_seconds=100, output_limit=9))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(workspace.root), lifeline.HOLD + command],
        env={"PYTHONPATH": str(PROJECT), "PATH": os.environ["PATH"]},
    ) as worker:
        await lifeline.up()
        worker.kill()
    assert lifeline.is_cut(seconds=PATIENCE_SECONDS)


async def test_host_commands_get_a_clean_environment(workspace, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "ENV-45")
    sandbox = LocalSandbox(allow_host_bash=True)
    result = await run(sandbox, workspace, "env; pwd")
    assert "ENV-45" not in result.output
    assert f"HOME={workspace.root}" in result.output
    assert result.output.endswith(f"{workspace.root}\n")


async def test_the_host_provider_runs_nothing_without_the_operators_word(workspace):
    sandbox = choose_sandbox("local", allow_host_bash=False, network=False)
    assert not sandbox.available().ok
    assert "allow_host_bash" in sandbox.available().reason
    with pytest.raises(SandboxUnavailable, match="allow_host_bash"):
        await run(sandbox, workspace, "touch made")
    assert workspace.listing() == []


def test_auto_takes_isolation_where_it_works_even_when_the_host_is_allowed():
    working = isolating_sandbox()
    assert type(choose_sandbox("auto", allow_host_bash=True, network=False)) is type(working)


async def test_where_nothing_may_run_the_reason_is_given_and_nothing_runs(workspace):
    sandbox = NoSandbox("There is no sandbox here.")
    assert sandbox.available().reason == "There is no sandbox here."
    with pytest.raises(SandboxUnavailable, match="no sandbox"):
        await run(sandbox, workspace, "touch made")
    assert workspace.listing() == []
