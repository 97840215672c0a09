"""Another installation of this product serves remote agents: real processes on its side, our client on ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from uuid_utils.compat import uuid7

from engine.outbound.policy import Policy
from engine.remote.client import RemoteAgent, RemoteServers
from engine.remote.faults import FaultKind, RemoteFault
from tests.patience import PATIENCE_SECONDS
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
PARENT = "0190aaaa-0000-7000-8000-00000000000f"


@pytest.fixture
async def servers() -> AsyncIterator[RemoteServers]:
    own = RemoteServers(lambda: Policy.of(["127.0.0.1/32"]), {})
    yield own
    await own.aclose()


@pytest.fixture
def researcher(web: WebProcess, anna: Caller) -> RemoteAgent:
    headers = {"Authorization": f"Bearer {anna.key}"}
    return RemoteAgent(name="researcher", graph_id="lead_agent", url=web.url, headers=headers)


async def begun(servers: RemoteServers, agent: RemoteAgent, prompt: str, thread_id: UUID | None = None, **how: bool):
    metadata = {"parent_thread_id": PARENT, "request_id": "r-1"}
    return await servers.start(agent, prompt, thread_id=thread_id or uuid7(), metadata=metadata, **how)


async def test_a_task_is_started_looked_at_told_more_and_brings_its_result(
    servers: RemoteServers, researcher: RemoteAgent, anna: Caller, model: ScriptedModel
):
    script_id, prompt = scripts.gated("remote-agent")
    task = await begun(servers, researcher, prompt)
    await model.until(lambda seen: bool(seen.calls_of(script_id)), PATIENCE_SECONDS)
    assert (await servers.status(researcher, task.thread_id, task.run_id)).status == "running"
    model.open_gate("remote-agent")
    await anna.sdk.runs.join(task.thread_id, task.run_id)
    done = await servers.status(researcher, task.thread_id, task.run_id)
    assert (done.status, done.result) == ("success", f"ok:{script_id}")

    more = await servers.update(researcher, task.thread_id, scripts.says("With history.")[1], metadata={})
    assert (more.thread_id, more.run_id != task.run_id) == (task.thread_id, True)
    await anna.sdk.runs.join(more.thread_id, more.run_id)
    assert (await servers.status(researcher, more.thread_id, more.run_id)).result == "With history."
    late = await servers.cancel(researcher, more.thread_id, more.run_id)
    assert (late.status, late.result) == ("success", "With history.")
    (thread,) = await anna.sdk.threads.search(metadata={"parent_thread_id": PARENT}, ids=[task.thread_id])
    assert thread["metadata"]["request_id"] == "r-1"


async def test_an_update_takes_the_place_of_what_runs_and_a_cancel_stops_it(
    servers: RemoteServers, researcher: RemoteAgent, anna: Caller, model: ScriptedModel
):
    first_id, first = scripts.hanging()
    second_id, second = scripts.hanging()
    task = await begun(servers, researcher, first)
    await model.until(lambda seen: bool(seen.calls_of(first_id)), PATIENCE_SECONDS)
    newer = await servers.update(researcher, task.thread_id, second, metadata={})
    await model.until(lambda seen: bool(seen.calls_of(second_id)), PATIENCE_SECONDS)
    followed = await servers.status(researcher, task.thread_id, task.run_id)
    assert (followed.run_id, followed.status) == (newer.run_id, "running")
    assert (await servers.cancel(researcher, task.thread_id, task.run_id)).status == "cancelled"
    await anna.sdk.runs.join(newer.thread_id, newer.run_id)
    assert (await servers.status(researcher, newer.thread_id, newer.run_id)).status == "interrupted"


async def test_a_start_that_is_made_again_begins_nothing_new(
    servers: RemoteServers, researcher: RemoteAgent, anna: Caller
):
    thread_id, prompt = uuid7(), scripts.says("Once.")[1]
    first = await begun(servers, researcher, prompt, thread_id)
    again = await begun(servers, researcher, prompt, thread_id, again=True)
    assert (again.thread_id, again.run_id) == (str(thread_id), first.run_id)
    assert len(await anna.sdk.runs.list(str(thread_id))) == 1
    await anna.sdk.runs.join(first.thread_id, first.run_id)


async def test_why_a_task_failed_is_told_in_words(servers: RemoteServers, researcher: RemoteAgent, anna: Caller):
    task = await begun(servers, researcher, scripts.flaky([500] * 9)[1])
    await anna.sdk.runs.join(task.thread_id, task.run_id)
    failed = await servers.status(researcher, task.thread_id, task.run_id)
    assert failed.status == "error"
    assert failed.error


async def test_the_test_of_a_connection_tells_a_wrong_key_from_a_wrong_graph(
    servers: RemoteServers, researcher: RemoteAgent, web: WebProcess
):
    await servers.probe(researcher)
    nobody = RemoteAgent(name="x", graph_id="no-such-agent", url=web.url, headers=researcher.headers)
    stranger = RemoteAgent(name="x", graph_id="lead_agent", url=web.url, headers={"Authorization": "Bearer nobody"})
    for agent, kind in ((nobody, FaultKind.UNKNOWN_GRAPH), (stranger, FaultKind.UNAUTHORIZED)):
        with pytest.raises(RemoteFault) as caught:
            await servers.probe(agent)
        assert caught.value.kind is kind
