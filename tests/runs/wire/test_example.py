"""examples/async-supervisor from outside: a process of its own that has nothing of ours but a URL and a key."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from langgraph_sdk.errors import NotFoundError

from runs.assistant_ids import assistant_id
from tests.patience import PATIENCE_SECONDS
from tests.runs.wire.callers import until_offered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess

pytestmark = pytest.mark.usefixtures("transactional_db", "model", "worker")
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "async-supervisor"
# Two turns of one conversation; between them the agents have time to finish.
PROGRAM = """
import asyncio, json, os, supervisor
from langgraph_sdk import get_client

async def main():
    first = await supervisor.graph.ainvoke({"messages": [("user", "Compare two owls.")]})
    client = get_client(url=os.environ["AGENTS_URL"])
    for task in first["async_tasks"].values():
        await client.runs.join(task["thread_id"], task["run_id"])
    asked = [*first["messages"], ("user", "How are they doing?")]
    second = await supervisor.graph.ainvoke({**first, "messages": asked})
    print(json.dumps({"tasks": second["async_tasks"], "said": second["messages"][-1].text}))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def registered(model: Any) -> Iterator[None]:
    """The example's own langgraph.json beside the configuration of these tests."""
    folder = settings.CONFIG_FILE.parent
    for file in (*EXAMPLE.glob("*.py"), EXAMPLE / "langgraph.json"):
        shutil.copy(file, folder)
    yield
    (folder / "langgraph.json").unlink()


@pytest.fixture(autouse=True)
async def agents(registered: None, anna: Caller) -> None:
    await until_offered(anna, "researcher")


async def ran(web: WebProcess, key: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the program in the example's folder."""
    mine = {
        name: value for name, value in os.environ.items() if name not in {"EXAMPLE_MODEL", "DJANGO_SETTINGS_MODULE"}
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        cwd=EXAMPLE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**mine, "AGENTS_URL": web.url, "LANGGRAPH_API_KEY": key, "LANGSMITH_TRACING": "false", "PYTHONPATH": ""},
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 2 * PATIENCE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_the_supervisor_hands_its_work_to_agents_of_this_platform(web: WebProcess, anna: Caller, bert: Caller):
    code, out, err = await ran(web, anna.key)
    assert code == 0, err
    told = json.loads(out)
    tasks = {task["agent_name"]: task for task in told["tasks"].values()}
    assert {name: task["status"] for name, task in tasks.items()} == {"researcher": "success", "coder": "success"}
    assert told["said"].startswith("(demo) ")
    for name, task in tasks.items():
        run = await anna.sdk.runs.get(task["thread_id"], task["run_id"])
        assert (run["status"], run["assistant_id"]) == ("success", assistant_id(name))
        values = (await anna.sdk.threads.get(task["thread_id"]))["values"]
        assert values["messages"][-1]["content"] == f"(demo) The {name} has finished: Compare two owls."
        with pytest.raises(NotFoundError):  # they are the key's owner's, and nobody else's
            await bert.sdk.threads.get(task["thread_id"])


async def test_without_a_good_key_nothing_is_started(web: WebProcess, anna: Caller):
    code, out, err = await ran(web, "not-a-key")
    assert (code, json.loads(out)["tasks"]) == (0, {}), err
    assert "the API key is not valid" in err
    assert await anna.sdk.threads.search() == []
