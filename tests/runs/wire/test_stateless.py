"""Runs without a thread of the caller's, through the real SDK."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from langgraph_sdk.errors import NotFoundError

from runs import clock, temporary
from runs.models import Run, Thread
from tests.runs.wire.callers import asks, caller_at, contents, events_of, in_database, said
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.runs.wire.callers import Caller
    from tests.runs.wire.proxy import DroppingProxy
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"


async def swept(seconds: float = temporary.KEPT_SECONDS + 1) -> int:
    """What a worker removes that looks so many seconds from now."""
    return int(await in_database(lambda: temporary.remove_ended(clock.now() + timedelta(seconds=seconds), most=1000)))


async def test_a_run_alone_gives_its_values_and_its_stream(anna: Caller):
    values = await anna.sdk.runs.wait(None, LEAD, input=said(scripts.says("Rome.")[1]))
    assert contents(values)[-1] == "Rome."
    parts = [part async for part in anna.sdk.runs.stream(None, LEAD, input=said(scripts.says("Paris.")[1]))]
    assert [part.event for part in parts] == ["metadata", "values", "values", "end"]
    assert contents(parts[-2].data)[-1] == "Paris."


async def test_headers_name_a_run_alone_by_its_own_path(anna: Caller):
    created = await anna.post("/runs", asks(scripts.instant()[1]))
    run = created.json()
    place = f"/runs/{run['run_id']}"
    assert (run["status"], created.headers["content-location"]) == ("pending", place)
    streamed = await anna.post("/runs/stream", asks(scripts.instant()[1]))
    own = f"/runs/{events_of(streamed.text)[0].data['run_id']}"
    assert (streamed.headers["location"], streamed.headers["content-location"]) == (f"{own}/stream", own)
    waited = await anna.post("/runs/wait", asks(scripts.instant()[1]))
    # The SDK understands only whole paths when it comes back to a wait that broke.
    assert waited.headers["location"].startswith("/threads/")
    assert (await anna.http.get(f"{place}/join")).json() == await anna.sdk.runs.join(run["thread_id"], run["run_id"])
    assert (await anna.http.get(place)).json()["status"] == "success"


async def test_the_thread_of_a_run_alone_goes_once_some_time_after_its_end(anna: Caller, model: ScriptedModel):
    await swept()
    run = await anna.sdk.runs.create(None, LEAD, input=said(scripts.gated("alone")[1]))
    assert await swept() == 0, "it is active"
    model.open_gate("alone")
    await anna.sdk.runs.join(run["thread_id"], run["run_id"])
    assert await swept(temporary.KEPT_SECONDS - 10) == 0, "somebody may still come back to it"
    assert sum(await asyncio.gather(swept(), swept())) >= 1, "whoever looks first"
    with pytest.raises(NotFoundError):
        await anna.sdk.threads.get(run["thread_id"])
    assert await in_database(Run.objects.filter(pk=run["run_id"]).exists) is False


async def test_the_thread_of_a_run_alone_is_kept_when_asked_for(anna: Caller):
    body = said(scripts.says("Kept.")[1])
    run = await anna.sdk.runs.create(None, LEAD, input=body, on_completion="keep")
    await anna.sdk.runs.join(run["thread_id"], run["run_id"])
    await swept()
    assert contents((await anna.sdk.threads.get(run["thread_id"]))["values"])[-1] == "Kept."


async def test_threads_that_go_are_in_nobodys_list(anna: Caller):
    run = await anna.sdk.runs.create(None, LEAD, input=said(scripts.instant()[1]))
    kept = await anna.thread()
    listed = await in_database(lambda: {str(thread.pk) for thread in Thread.objects.visible_to(anna.user).chats()})
    assert run["thread_id"] not in listed
    assert kept in listed


async def test_a_batch_starts_all_of_its_runs(anna: Caller):
    texts = ["One.", "Two.", "Three."]
    payloads: list[Any] = [asks(scripts.says(text)[1]) for text in texts]
    runs: Any = await anna.sdk.runs.create_batch(payloads)
    ended = [await anna.sdk.runs.join(run["thread_id"], run["run_id"]) for run in runs]
    assert [contents(values)[-1] for values in ended] == texts


@pytest.mark.parametrize("body", [[], {}, [5], "x", [asks("x")] * 101], ids=["none", "object", "number", "text", "101"])
async def test_what_is_no_batch_is_refused(anna: Caller, body: Any):
    answer = await anna.post("/runs/batch", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


async def test_a_broken_stream_of_a_run_alone_is_taken_up_by_its_own_path(
    anna: Caller, dropping: Callable[..., Awaitable[DroppingProxy]]
):
    proxy = await dropping(900)
    behind = caller_at(proxy.url, anna.user, anna.key)
    prompt = scripts.tokens(400)[1]
    parts = [
        part async for part in behind.sdk.runs.stream(None, LEAD, input=said(prompt), stream_mode="messages-tuple")
    ]
    run_id = parts[0].data["run_id"]
    assert proxy.cuts_left == 0
    assert any(f"/runs/{run_id}/stream".encode() in head for head in proxy.requests[1:])
    text = "".join(part.data[0]["content"] for part in parts if part.event == "messages")
    assert text.split() == [f"t{number}" for number in range(400)]
    assert parts[-1].event == "end"
    await behind.close()
