"""The Agent Protocol's own paths: the same threads and runs in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from runs.agent_protocol.shapes import assistant_id
from tests.runs.wire.callers import events_of, make_caller, said, unknown_id
from tests.runs.wire.test_access import in_shape
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.runs.wire.callers import Caller
    from tests.runs.wire.processes import WebProcess
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")


def client_of(web: WebProcess, caller: Caller) -> httpx.AsyncClient:
    url = web.url.replace("/langgraph", "/ap")
    return httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {caller.key}"}, timeout=60)


@pytest.fixture
async def ap(web: WebProcess, anna: Caller) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(web, anna) as client:
        yield client


def user(prompt: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": prompt}]


async def thread_of(ap: httpx.AsyncClient) -> str:
    return str((await ap.post("/threads", json={})).json()["thread_id"])


async def test_agents_are_found_and_described(ap: httpx.AsyncClient):
    found = (await ap.post("/agents/search", json={})).json()
    lead = next(one for one in found if one["agent_id"] == "lead_agent")
    assert lead["capabilities"]["ap.io.messages"] is True
    assert (await ap.post("/agents/search", json={"name": "no such name"})).json() == []
    assert (await ap.post("/agents/search", json={"metadata": {"a": 1}})).json() == []
    for name in ("lead_agent", assistant_id("lead_agent")):
        assert (await ap.get(f"/agents/{name}")).json() == lead
    schemas = (await ap.get("/agents/lead_agent/schemas")).json()
    assert {"agent_id", "input_schema", "output_schema", "state_schema", "config_schema"} == set(schemas)
    for path in ("/agents/nobody", "/agents/nobody/schemas"):
        in_shape(await ap.get(path), 404, "not_found")


async def test_a_run_is_waited_for_with_its_values_and_messages(ap: httpx.AsyncClient):
    answer = (await ap.post("/runs/wait", json={"messages": user(scripts.says("Rome.")[1])})).json()
    assert set(answer) == {"run", "values", "messages"}
    assert (answer["run"]["status"], answer["run"]["agent_id"]) == ("success", "lead_agent")
    assert [message["role"] for message in answer["messages"]] == ["user", "assistant"]
    assert answer["messages"][-1]["content"] == "Rome."
    failed = (await ap.post("/runs/wait", json={"input": said(scripts.flaky([500] * 9)[1])})).json()
    assert (failed["run"]["status"], failed["run"]["error"]["error"]) == ("error", "model_server_error")


async def test_a_background_run_is_pending_while_it_works_and_found_by_its_own_id(
    ap: httpx.AsyncClient, model: ScriptedModel
):
    thread_id = await thread_of(ap)
    script_id, prompt = scripts.gated("ap")
    created = await ap.post("/runs", json={"thread_id": thread_id, "messages": user(prompt), "metadata": {"m": 1}})
    run = created.json()
    place = f"/runs/{run['run_id']}"
    assert (run["status"], run["thread_id"], created.headers["content-location"]) == ("pending", thread_id, place)
    await model.until(lambda seen: bool(seen.calls_of(script_id)), 60)
    assert (await ap.get(place)).json()["status"] == "pending"
    search = {"thread_id": thread_id, "status": "pending", "metadata": {"m": 1}, "agent_id": "lead_agent"}
    assert [one["run_id"] for one in (await ap.post("/runs/search", json=search)).json()] == [run["run_id"]]
    model.open_gate("ap")
    waited = (await ap.get(f"{place}/wait")).json()
    assert waited["run"]["status"] == "success"
    assert (await ap.post("/runs/search", json=search)).json() == []
    events = events_of((await ap.get(f"{place}/stream")).text)
    assert (events[0].name, events[-1].name) == ("metadata", "end")
    assert (await ap.delete(place)).status_code == 204
    in_shape(await ap.get(place), 404, "not_found")


async def test_a_run_is_streamed_and_taken_up_again(ap: httpx.AsyncClient):
    body = {
        "input": scripts.says("Stream.")[1],
        "on_disconnect": "continue",
    }
    answer = await ap.post("/runs/stream", json=body)
    events = events_of(answer.text)
    assert answer.headers["location"] == f"/runs/{events[0].data['run_id']}/stream"
    again = await ap.get(answer.headers["location"], headers={"last-event-id": str(events[0].id)})
    assert events_of(again.text) == events[1:]


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
async def test_a_run_is_stopped_and_its_end_is_waited_for(ap: httpx.AsyncClient, model: ScriptedModel, action: str):
    thread_id = await thread_of(ap)
    script_id, prompt = scripts.hanging()
    run = (await ap.post("/runs", json={"thread_id": thread_id, "messages": user(prompt)})).json()
    await model.until(lambda seen: bool(seen.calls_of(script_id)), 60)
    place = f"/runs/{run['run_id']}"
    answer = await ap.post(f"{place}/cancel?wait=1&action={action}")
    assert (answer.status_code, answer.content) == (204, b"")
    left = await ap.get(place)
    assert left.status_code == 404 if action == "rollback" else left.json()["status"] == "interrupted"
    in_shape(await ap.post(f"{place}/cancel"), 404, "not_found" if action == "rollback" else "already_ended")


async def test_threads_are_made_changed_copied_and_gone_back_to(ap: httpx.AsyncClient):
    made = (await ap.post("/threads", json={"metadata": {"topic": "ap"}})).json()
    thread_id = made["thread_id"]
    assert (made["status"], made["values"], made["messages"]) == ("idle", {}, [])
    await ap.post("/runs/wait", json={"thread_id": thread_id, "messages": user(scripts.says("First.")[1])})
    changed = await ap.patch(f"/threads/{thread_id}", json={"metadata": {"more": 1}, "values": {"note": "x"}})
    assert (changed.json()["metadata"], changed.json()["values"]) == ({"topic": "ap", "more": 1}, {"note": "x"})
    added = await ap.patch(f"/threads/{thread_id}", json={"messages": user("By hand.")})
    assert added.json()["messages"][-1]["content"] == "By hand."
    states = (await ap.get(f"/threads/{thread_id}/history?limit=10")).json()
    assert [len(state["messages"]) for state in states] == [3, 2, 2, 1]
    earlier = (await ap.get(f"/threads/{thread_id}/history?before={states[1]['checkpoint']['checkpoint_id']}")).json()
    assert earlier == states[2:]
    forked = await ap.patch(
        f"/threads/{thread_id}", json={"checkpoint": states[3]["checkpoint"], "messages": user("Otherwise.")}
    )
    assert [message["content"] for message in forked.json()["messages"]][1:] == ["Otherwise."]
    copy = (await ap.post(f"/threads/{thread_id}/copy")).json()
    assert copy["messages"] == forked.json()["messages"]
    found = (await ap.post("/threads/search", json={"metadata": {"topic": "ap", "more": 1}})).json()
    assert {one["thread_id"] for one in found} == {thread_id, copy["thread_id"]}
    assert (await ap.delete(f"/threads/{thread_id}")).status_code == 204
    in_shape(await ap.get(f"/threads/{thread_id}"), 404, "not_found")
    assert (await ap.get(f"/threads/{copy['thread_id']}")).json()["messages"]


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("agent_id", {"agent_id": "nobody", "messages": user("x")}),
        ("agent_id", {"agent_id": 5, "messages": user("x")}),
        ("messages", {"messages": []}),
        ("messages[0].role", {"messages": [{"role": "robot", "content": "x"}]}),
        ("input.messages", {"input": {}}),
        ("input", {}),
        ("input", {"input": 5}),
        ("thread_id", {"thread_id": "x", "messages": user("x")}),
        ("stream_mode", {"stream_mode": "debug", "messages": user("x")}),
        ("on_disconnect", {"on_disconnect": "x", "messages": user("x")}),
        ("webhook", {"webhook": "http://127.0.0.1/", "messages": user("x")}),
    ],
)
async def test_a_wrong_field_is_named_in_this_protocols_words(ap: httpx.AsyncClient, field: str, body: dict[str, Any]):
    for path in ("/runs", "/runs/wait", "/runs/stream"):
        assert in_shape(await ap.post(path, json=body), 422, "invalid")["metadata"]["field"] == field


async def test_the_store_keeps_items_and_says_what_is_missing(ap: httpx.AsyncClient, web: WebProcess):
    item = {"namespace": ["users", "lin"], "key": "likes", "value": {"colour": "blue"}}
    assert (await ap.put("/store/items", json=item)).status_code == 204
    where = [("namespace", "users"), ("namespace", "lin"), ("key", "likes")]
    got = (await ap.get("/store/items", params=where)).json()
    assert {name: got[name] for name in item} == item
    found = (await ap.post("/store/items/search", json={"namespace_prefix": ["users"]})).json()
    assert [one["key"] for one in found["items"]] == ["likes"]
    assert (await ap.post("/store/namespaces", json={})).json() == [["users", "lin"]]
    stranger = await make_caller(web.url)
    async with client_of(web, stranger) as theirs:
        in_shape(await theirs.get("/store/items", params=where), 404, "not_found")
        assert (await theirs.post("/store/namespaces", json={})).json() == []
    await stranger.close()
    gone = await ap.request("DELETE", "/store/items", json={"namespace": ["users", "lin"], "key": "likes"})
    assert gone.status_code == 204
    in_shape(await ap.get("/store/items", params=where), 404, "not_found")


READS = [
    ("GET", "/threads/{thread}"),
    ("GET", "/threads/{thread}/history"),
    ("GET", "/runs/{run}"),
    ("GET", "/runs/{run}/wait"),
    ("GET", "/runs/{run}/stream"),
]
SEARCHES = [
    ("POST", "/agents/search"),
    ("GET", "/agents/lead_agent"),
    ("GET", "/agents/lead_agent/schemas"),
    ("POST", "/threads/search"),
    ("POST", "/runs/search"),
    ("POST", "/store/items/search"),
    ("POST", "/store/namespaces"),
]
WRITES = [
    ("PATCH", "/threads/{thread}"),
    ("POST", "/threads/{thread}/copy"),
    ("POST", "/runs/{run}/cancel"),
    ("DELETE", "/runs/{run}"),
    ("DELETE", "/threads/{thread}"),
]
CREATIONS = [("POST", "/threads"), ("POST", "/runs"), ("POST", "/runs/wait"), ("POST", "/runs/stream")]


async def test_every_path_wants_a_key_its_scope_and_the_owner(ap: httpx.AsyncClient, web: WebProcess, anna: Caller):
    thread_id = await thread_of(ap)
    body = {"thread_id": thread_id, "messages": user(scripts.instant()[1])}
    run_id = (await ap.post("/runs/wait", json=body)).json()["run"]["run_id"]
    stranger = await make_caller(web.url)
    reader = await make_caller(web.url, ("read",), user=anna.user)

    async def ask(client: httpx.AsyncClient, route: tuple[str, str], place: dict[str, str]) -> httpx.Response:
        method, path = route
        sent = {} if method in {"PATCH", "POST"} else None
        return await client.request(method, path.format(**place), json=sent)

    own, nobodys = {"thread": thread_id, "run": run_id}, {"thread": unknown_id(), "run": unknown_id()}
    async with client_of(web, stranger) as theirs, client_of(web, reader) as reading:
        for route in [*READS, *WRITES]:
            foreign = in_shape(await ask(theirs, route, own), 404, "not_found")
            assert set(in_shape(await ask(theirs, route, nobodys), 404, "not_found")) == set(foreign), route
        in_shape(await theirs.post("/runs", json=body), 404, "not_found")
        assert (await theirs.post("/runs/search", json={})).json() == []
        assert (await theirs.post("/threads/search", json={})).json() == []
        for route in [*READS, *SEARCHES]:
            assert (await ask(reading, route, own)).status_code == 200, route
        for route in [*WRITES, *CREATIONS]:
            in_shape(await ask(reading, route, own), 403, "scope_missing")
    async with httpx.AsyncClient(base_url=ap.base_url) as nobody:
        for route in [*READS, *SEARCHES, *WRITES, *CREATIONS]:
            in_shape(await ask(nobody, route, own), 401, "no_key")
    for caller in (stranger, reader):
        await caller.close()
