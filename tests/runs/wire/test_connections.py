"""Connections that break, and clients that leave."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from langgraph_sdk import get_client

from tests.runs.wire.callers import asks, contents, said, text_in
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.runs.wire.callers import Caller
    from tests.runs.wire.proxy import DroppingProxy
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"


@pytest.mark.parametrize("mode", ["messages-tuple", "values"])
async def test_a_stream_whose_connection_breaks_goes_on_without_gap_or_double(
    anna: Caller, dropping: Callable[..., Awaitable[DroppingProxy]], mode: str
):
    proxy = await dropping(900, 1500)
    thread_id = await anna.thread()
    sdk = get_client(url=proxy.url, api_key=anna.key)
    words = {"calls": [scripts.call("ls", path=".")], "chunks": ["I ", "look. "]}
    prompt = scripts.script(words, {"tokens": 60})[1]
    parts = [part async for part in sdk.runs.stream(thread_id, LEAD, input=said(prompt), stream_mode=mode)]
    await sdk.aclose()
    assert proxy.cuts_left == 0
    assert [part.event for part in parts].count("metadata") == 1
    assert len({part.id for part in parts}) == len(parts)
    answer = "".join(f"t{number} " for number in range(60))
    if mode == "values":
        assert [len(part.data["messages"]) for part in parts[1:-1]] == [1, 2, 3, 4]
        assert contents(parts[-2].data)[-1] == answer
    else:
        assert text_in(parts) == "I look. " + answer


async def test_a_joined_stream_keeps_its_modes_over_a_broken_connection(
    anna: Caller, dropping: Callable[..., Awaitable[DroppingProxy]]
):
    proxy = await dropping(700)
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.tokens(50)[1]))
    await anna.sdk.runs.join(thread_id, run["run_id"])
    sdk = get_client(url=proxy.url, api_key=anna.key)
    parts = [part async for part in sdk.runs.join_stream(thread_id, run["run_id"], stream_mode="updates")]
    whole = [part async for part in anna.sdk.runs.join_stream(thread_id, run["run_id"], stream_mode="updates")]
    await sdk.aclose()
    assert proxy.cuts_left == 0
    assert [(part.event, part.data, part.id) for part in parts] == [(p.event, p.data, p.id) for p in whole]
    assert b"last-event-id: " in proxy.requests[-1].lower()


async def test_a_wait_whose_connection_breaks_still_gets_the_values(
    anna: Caller, dropping: Callable[..., Awaitable[DroppingProxy]], model: ScriptedModel
):
    proxy = await dropping(400)
    thread_id = await anna.thread()
    sdk = get_client(url=proxy.url, api_key=anna.key)
    text = "x" * 5000
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Request failed, attempting reconnect")
        values = await sdk.runs.wait(thread_id, LEAD, input=said(scripts.says(text)[1]))
    await sdk.aclose()
    assert proxy.cuts_left == 0
    assert contents(values)[-1] == text
    assert len(await anna.sdk.runs.list(thread_id)) == 1, "the run was not started twice"


async def left(anna: Caller, path: str, body: dict[str, Any], model: ScriptedModel, script_id: str) -> None:
    """Send a request and hang up once its run is with the model."""
    request = asyncio.create_task(anna.post(path, body))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)


@pytest.mark.parametrize("path", ["wait", "stream"])
async def test_a_client_that_leaves_stops_its_run_when_it_said_so(anna: Caller, model: ScriptedModel, path: str):
    thread_id = await anna.thread()
    script_id, prompt = scripts.hanging()
    await left(anna, f"/threads/{thread_id}/runs/{path}", asks(prompt, on_disconnect="cancel"), model, script_id)
    (run,) = await anna.sdk.runs.list(thread_id)
    await anna.sdk.runs.join(thread_id, run["run_id"])
    assert (await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"
    await model.until(lambda seen: seen.calls_of(script_id)[0].disconnected_at is not None)


@pytest.mark.parametrize("path", ["wait", "stream"])
async def test_a_client_that_leaves_otherwise_lets_its_run_go_on(anna: Caller, model: ScriptedModel, path: str):
    thread_id = await anna.thread()
    script_id, prompt = scripts.gated(f"left-{path}")
    await left(anna, f"/threads/{thread_id}/runs/{path}", asks(prompt), model, script_id)
    model.open_gate(f"left-{path}")
    (run,) = await anna.sdk.runs.list(thread_id)
    assert contents(await anna.sdk.runs.join(thread_id, run["run_id"]))[-1] == f"ok:{script_id}"


async def test_a_joined_stream_stops_the_run_only_when_told_to(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.hanging()[1]))
    path = f"/threads/{thread_id}/runs/{run['run_id']}/stream"
    for cancel in ("false", "true"):
        async with anna.http.stream("GET", path, params={"cancel_on_disconnect": cancel}) as answer:
            assert answer.status_code == 200
            await anext(answer.aiter_bytes())
        if cancel == "false":
            assert (await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] in {"pending", "running"}
    await anna.sdk.runs.join(thread_id, run["run_id"])
    assert (await anna.sdk.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"
