"""Tasks on another server: what is sent, with which key, and what LangGraph's words mean for a task."""

from __future__ import annotations

from uuid import UUID

import pytest

from engine.config.connections import EnvKeyPolicy
from engine.outbound.policy import Policy
from engine.remote.client import RemoteAgent, RemoteServers
from engine.remote.faults import FaultKind, RemoteFault
from engine.remote.keys import env_key, headers_for
from tests.engine.remote.hostile import RUN, THREAD, hostile_server, say

NEWER = "0190aaaa-0000-7000-8000-000000000003"
KEYS = {"LANGGRAPH_API_KEY": '"lg-key"', "LANGSMITH_API_KEY": "ls-key"}


@pytest.fixture
async def server():
    async with hostile_server() as found:
        yield found


@pytest.fixture
async def servers(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)  # where the SDK would look by itself
    own = RemoteServers(lambda: Policy.of(["127.0.0.1/32"]), KEYS)
    yield own
    await own.aclose()


def remote(server, **fields) -> RemoteAgent:
    return RemoteAgent(**{"name": "worker", "graph_id": "worker", "url": server.url, **fields})


async def test_a_task_begins_as_a_thread_and_a_run_that_say_whose_they_are(server, servers):
    metadata = {"parent_thread_id": "p", "request_id": "r"}
    begun = await servers.start(remote(server), "Research tides", thread_id=UUID(THREAD), metadata=metadata)
    made, run = server.asked
    assert (begun.thread_id, begun.run_id, begun.status) == (THREAD, RUN, "running")
    assert made.body == {"thread_id": THREAD, "if_exists": "do_nothing", "metadata": {**metadata, "graph_id": "worker"}}
    assert run.path == f"/threads/{THREAD}/runs"
    assert run.body["input"] == {"messages": [{"role": "user", "content": "Research tides"}]}
    assert run.body["metadata"] == metadata
    assert "multitask_strategy" not in run.body


async def test_a_start_that_is_made_again_finds_the_run_of_the_first(server, servers):
    await servers.start(remote(server), "work", thread_id=UUID(THREAD), metadata={}, again=True)
    assert server.paths == ["POST /threads", f"GET /threads/{THREAD}/runs"]


async def test_no_key_of_the_environment_goes_to_a_server_of_somebody_else(server, servers):
    await servers.status(remote(server, headers={"Authorization": "Bearer own"}), THREAD, RUN)
    assert "x-api-key" not in server.asked[0].headers
    assert server.asked[0].headers["authorization"] == "Bearer own"
    assert server.asked[0].headers["accept-encoding"] == "identity"
    await servers.status(remote(server, use_env_key=EnvKeyPolicy.ALWAYS), THREAD, RUN)
    assert server.asked[1].headers["x-api-key"] == "lg-key"


@pytest.mark.parametrize(
    ("url", "policy", "key"),
    [
        ("https://a.langsmith.dev/x", "auto", "lg-key"),
        ("https://langgraph.app", "auto", "lg-key"),
        ("https://a.b.us.langgraph.app:443", "auto", "lg-key"),
        ("http://a.langsmith.dev", "auto", None),
        ("https://langsmith.dev.evil.example", "auto", None),
        ("https://evil-langsmith.dev", "auto", None),
        ("https://user@evil.example/.langsmith.dev", "auto", None),
        ("https://example.com/?x=.langgraph.app", "auto", None),
        ("https://a.langsmith.dev", "never", None),
        ("http://10.0.0.1", "always", "lg-key"),
    ],
)
def test_the_environment_s_key_goes_where_it_is_meant_to_and_nowhere_else(url, policy, key):
    assert env_key(url, EnvKeyPolicy(policy), KEYS) == key


def test_a_key_of_its_own_stands_before_that_of_the_environment():
    assert headers_for("https://x.langsmith.dev", {"X-Api-Key": "own"}, EnvKeyPolicy.ALWAYS, KEYS) == {
        "x-api-key": "own"
    }


@pytest.mark.parametrize(
    ("run", "thread", "status", "shown"),
    [
        ({"status": "success"}, {"values": {"messages": [{"content": "Done."}]}}, "success", ("Done.", "", "")),
        (
            {"status": "success"},
            {"values": {"messages": [{"content": [{"type": "text", "text": "a"}, {"type": "image"}]}]}},
            "success",
            ("a\n[image]", "", ""),
        ),
        ({"status": "success"}, {"values": None}, "success", ("(completed with no output messages)", "", "")),
        ({"status": "success"}, {"values": {"messages": [7]}}, "success", ("7", "", "")),
        ({"status": "error", "error": "It broke."}, {}, "error", ("", "It broke.", "")),
        ({"status": "error"}, {"error": {"error": "ValueError", "message": "no data"}}, "error", ("", "no data", "")),
        ({"status": "error"}, {"error": None}, "error", ("", "", "")),
        (
            {"status": "success"},
            {"status": "interrupted", "interrupts": {"t": [{"id": "i", "value": "Which city?"}]}},
            "waiting",
            ("", "", "Which city?"),
        ),
        ({"status": "interrupted"}, {"status": "idle"}, "interrupted", ("", "", "")),
        ({"status": "timeout"}, {}, "timeout", ("", "", "")),
        ({"status": "pending"}, {}, "pending", ("", "", "")),
    ],
)
async def test_what_the_server_says_of_a_run_and_its_thread_is_one_status(server, servers, run, thread, status, shown):
    server.run |= run
    server.thread |= thread
    seen = await servers.status(remote(server), THREAD, RUN)
    assert (seen.status, (seen.result, seen.error, seen.asks)) == (status, shown)


async def test_a_run_that_a_newer_one_took_the_place_of_leads_to_the_newer(server, servers):
    server.acts[f"GET /threads/{THREAD}/runs/{RUN}"] = say(200, {**server.run, "status": "interrupted"})
    server.run = {**server.run, "run_id": NEWER, "status": "running"}
    seen = await servers.status(remote(server), THREAD, RUN)
    assert (seen.run_id, seen.status) == (NEWER, "running")


@pytest.mark.parametrize("strategy", ["interrupt", "enqueue"])
async def test_new_instructions_are_a_run_on_the_same_thread(server, servers, strategy):
    agent = remote(server, update_strategy=strategy, webhook="https://hooks.example/done")
    await servers.update(agent, THREAD, "only Europe", metadata={"parent_thread_id": "p"})
    assert server.paths == [f"POST /threads/{THREAD}/runs"]
    assert server.asked[0].body["multitask_strategy"] == strategy
    assert server.asked[0].body["webhook"] == "https://hooks.example/done"


async def test_cancelling_interrupts_and_a_task_that_has_ended_keeps_its_end(server, servers):
    stopped = await servers.cancel(remote(server), THREAD, RUN)
    assert stopped.status == "cancelled"
    assert server.asked[-1].path == f"/threads/{THREAD}/runs/{RUN}/cancel?wait=0&action=interrupt"
    server.run["status"] = "success"
    server.thread["values"] = {"messages": [{"content": "Too late."}]}
    kept = await servers.cancel(remote(server), THREAD, RUN)
    assert (kept.status, kept.result) == ("success", "Too late.")


async def test_a_task_that_ends_while_it_is_being_cancelled_keeps_its_end(server, servers):
    async def ended_first(writer, asked):
        server.run["status"] = "success"
        await say(404, {"detail": "Run not found"})(writer, asked)

    server.acts[f"POST /threads/{THREAD}/runs/{RUN}/cancel"] = ended_first
    assert (await servers.cancel(remote(server), THREAD, RUN)).status == "success"


async def test_a_look_at_the_server_tells_an_unknown_graph_from_another_kind_of_server(server, servers):
    await servers.probe(remote(server))
    assert server.asked[0].body["graph_id"] == "worker"
    server.assistants = []
    with pytest.raises(RemoteFault, match="knows no graph or assistant called worker") as caught:
        await servers.probe(remote(server))
    assert caught.value.kind is FaultKind.UNKNOWN_GRAPH
    server.acts["POST /assistants/search"] = say(404, {"detail": "Not Found"})
    await servers.probe(remote(server))  # one with threads only is enough for tasks
    server.acts["POST /threads/search"] = say(404, b"nothing here", "text/plain")
    with pytest.raises(RemoteFault) as caught:
        await servers.probe(remote(server))
    assert caught.value.kind is FaultKind.NOT_PROTOCOL
