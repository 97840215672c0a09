"""Another team's deepagents, as it comes from PyPI, uses this platform with nothing but a URL and a key."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runs.wire.callers import contents, unknown_id
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
OLDER = Path(sys.prefix) / "deepagents-0.7.8"  # where the Makefile puts it
PATIENCE_SECONDS = 90.0


class Supervisor:
    """The other team's process. One person's key, one conversation for each test."""

    def __init__(self, process: asyncio.subprocess.Process, version: str) -> None:
        self._process, self.version = process, version

    async def turn(self, thread: str, *calls: tuple[str, dict[str, str]], sync: bool = False) -> dict[str, Any]:
        bids = [{"name": name, "args": arguments} for name, arguments in calls]
        return await self.ask({"thread": thread, "calls": bids, "sync": sync})

    async def ask(self, line: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        answer = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE_SECONDS)
        found: dict[str, Any] = json.loads(answer)
        return found


@pytest.fixture(params=["0.7.8", "0.7.32"])
async def supervisor(request: pytest.FixtureRequest, web: WebProcess, anna: Caller) -> AsyncIterator[Supervisor]:
    version: str = request.param
    assert version != "0.7.8" or OLDER.is_dir(), "make test installs it"
    path = os.pathsep.join([str(OLDER), str(Path.cwd())] if version == "0.7.8" else [str(Path.cwd())])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.runs.wire.supervisor",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "LANGGRAPH_API_KEY": anna.key, "LANGSMITH_TRACING": "false"},
        limit=1 << 24,
    )
    running = Supervisor(process, version)
    agents = [
        {"name": "researcher", "description": "Researches.", "graph_id": "lead_agent", "url": web.url},
        {"name": "nobody", "description": "Is not there.", "graph_id": "no-such-agent", "url": web.url},
        {
            "name": "bearer",
            "description": "Another key in another header.",
            "graph_id": "lead_agent",
            "url": web.url,
            "headers": {"Authorization": "Bearer wrong"},
        },
    ]
    try:
        told = await running.ask({"subagents": agents})
        assert told["version"] == version
        yield running
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def start(prompt: str, agent: str = "researcher") -> tuple[str, dict[str, str]]:
    return "start_async_task", {"description": prompt, "subagent_type": agent}


def check(task: str) -> tuple[str, dict[str, str]]:
    return "check_async_task", {"task_id": task}


async def test_a_background_agent_is_started_checked_told_more_and_listed(
    supervisor: Supervisor, anna: Caller, model: ScriptedModel
):
    gate = f"deepagents-{supervisor.version}"
    script_id, prompt = scripts.gated(gate)
    begun = await supervisor.turn("t", start(prompt))
    ((task, record),) = begun["tasks"].items()
    assert begun["tools"] == [f"Launched async subagent. task_id: {task}"]
    assert (record["task_id"], record["thread_id"], record["agent_name"]) == (task, task, "researcher")
    (run,) = await anna.sdk.runs.list(task)
    assert run["run_id"] == record["run_id"]
    await model.until(lambda seen: bool(seen.calls_of(script_id)), PATIENCE_SECONDS)
    assert json.loads((await supervisor.turn("t", check(task)))["tools"][0])["status"] == "running"

    model.open_gate(gate)
    await anna.sdk.runs.join(task, record["run_id"])
    done = json.loads((await supervisor.turn("t", check(task)))["tools"][0])
    assert (done["status"], done["result"]) == ("success", f"ok:{script_id}")

    more = {"task_id": task, "message": scripts.says("With history.")[1]}
    told = await supervisor.turn("t", ("update_async_task", more))
    assert told["tools"] == [f"Updated async subagent. task_id: {task}"]
    newest = told["tasks"][task]["run_id"]
    assert newest != record["run_id"]
    assert contents(await anna.sdk.runs.join(task, newest))[0] == prompt
    listed = await supervisor.turn("t", ("list_async_tasks", {}))
    assert f"task_id: {task}" in listed["tools"][0]
    assert "status: success" in listed["tools"][0]


async def test_an_update_interrupts_and_the_first_task_stays_in_the_history(
    supervisor: Supervisor, anna: Caller, model: ScriptedModel
):
    script_id, prompt = scripts.hanging()
    ((task, record),) = (await supervisor.turn("t", start(prompt)))["tasks"].items()
    await model.until(lambda seen: bool(seen.calls_of(script_id)), PATIENCE_SECONDS)
    more = scripts.says("Redirected.")[1]
    told = await supervisor.turn("t", ("update_async_task", {"task_id": task, "message": more}))
    values = await anna.sdk.runs.join(task, told["tasks"][task]["run_id"])
    said = [message["content"] for message in values["messages"] if message["type"] == "human"]
    assert said == [prompt, more]
    assert contents(values)[-1] == "Redirected."
    assert (await anna.sdk.runs.get(task, record["run_id"]))["status"] == "interrupted"
    assert json.loads((await supervisor.turn("t", check(task)))["tools"][0])["result"] == "Redirected."


async def test_several_are_started_in_one_turn_and_work_at_once(
    supervisor: Supervisor, anna: Caller, model: ScriptedModel
):
    works = [scripts.hanging() for _ in range(3)]
    begun = await supervisor.turn("t", *[start(prompt) for _id, prompt in works])
    assert len(begun["tasks"]) == len(begun["tools"]) == 3
    await model.until(lambda seen: all(seen.calls_of(script_id) for script_id, _prompt in works), PATIENCE_SECONDS)
    tasks = list(begun["tasks"])
    stopped = await supervisor.turn("t", *[("cancel_async_task", {"task_id": task}) for task in tasks])
    assert {record["status"] for record in stopped["tasks"].values()} == {"cancelled"}
    for task, record in begun["tasks"].items():
        await anna.sdk.runs.join(task, record["run_id"])
        assert (await anna.sdk.runs.get(task, record["run_id"]))["status"] == "interrupted"
    again = await supervisor.turn("t", ("cancel_async_task", {"task_id": tasks[0]}))
    assert "Failed to cancel run" in again["tools"][0]
    assert "already ended" in again["tools"][0]


async def test_what_went_wrong_reaches_the_supervisor_in_words(supervisor: Supervisor, anna: Caller):
    ((task, record),) = (await supervisor.turn("t", start(scripts.flaky([500] * 9)[1])))["tasks"].items()
    await anna.sdk.runs.join(task, record["run_id"])
    failed = json.loads((await supervisor.turn("t", check(task)))["tools"][0])
    assert failed["status"] == "error"
    assert "model_server_error" in json.dumps(failed["error"])
    unknown = await supervisor.turn("u", start("hello", "nobody"))
    assert "Failed to launch async subagent 'nobody'" in unknown["tools"][0]
    assert "there is no agent of this name" in unknown["tools"][0]
    assert unknown["tasks"] == {}
    missing = await supervisor.turn("t", check(unknown_id()))
    assert "No tracked task found" in missing["tools"][0]
    await anna.sdk.threads.delete(task)
    lost = await supervisor.turn("t", check(task))
    assert "Failed to get run status" in lost["tools"][0]


async def test_the_tools_work_without_a_loop_too(supervisor: Supervisor, anna: Caller):
    ((task, record),) = (await supervisor.turn("s", start(scripts.says("Calm.")[1]), sync=True))["tasks"].items()
    await anna.sdk.runs.join(task, record["run_id"])
    done = json.loads((await supervisor.turn("s", check(task), sync=True))["tools"][0])
    assert (done["status"], done["result"]) == ("success", "Calm.")


async def test_the_key_of_the_environment_opens_even_when_another_header_is_wrong(supervisor: Supervisor, anna: Caller):
    ((task, record),) = (await supervisor.turn("b", start(scripts.says("Open.")[1], "bearer")))["tasks"].items()
    assert contents(await anna.sdk.runs.join(task, record["run_id"]))[-1] == "Open."
