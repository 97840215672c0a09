"""What a run's stream says, in which order, and where it can be taken up again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from runs import services
from runs.agent_protocol.following import HEARTBEAT_SECONDS
from runs.event_types import EventType
from runs.models import Event
from tests.runs.wire.callers import ServerEvent, asks, contents, events_of, in_database, said, stream_of
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db", "worker")
LEAD = "lead_agent"
ALL = ["values", "updates", "messages", "messages-tuple"]


def with_a_tool(answer: str = "There is nothing.") -> str:
    """A reply with words and a call, the call's result, and an answer in pieces."""
    first = {"chunks": ["I ", "look. "], "calls": [scripts.call("ls", path=".")]}
    return scripts.script(first, {"chunks": [answer[:5], answer[5:10], answer[10:]]})[1]


async def streamed(caller: Caller, thread_id: str, prompt: str, modes: Any) -> list[Any]:
    return [part async for part in caller.sdk.runs.stream(thread_id, LEAD, input=said(prompt), stream_mode=modes)]


async def finished(caller: Caller, prompt: str, modes: list[str]) -> str:
    """The place of a run that was created with these modes and has ended."""
    thread_id = await caller.thread()
    await caller.sdk.runs.wait(thread_id, LEAD, input=said("first"))
    run = await caller.sdk.runs.create(thread_id, LEAD, input=said(prompt), stream_mode=modes)
    await caller.sdk.runs.join(thread_id, run["run_id"])
    return f"/threads/{thread_id}/runs/{run['run_id']}"


async def test_values_are_whole_states_that_grow_to_the_threads_own(anna: Caller):
    thread_id = await anna.thread()
    parts = await streamed(anna, thread_id, with_a_tool(), "values")
    assert [part.event for part in parts] == ["metadata", "values", "values", "values", "values", "end"]
    assert [len(part.data["messages"]) for part in parts[1:-1]] == [1, 2, 3, 4]
    assert parts[-2].data == (await anna.sdk.threads.get(thread_id))["values"]
    assert set(parts[0].data) == {"run_id", "attempt"}


async def test_updates_name_the_node_and_hold_only_what_is_new(anna: Caller):
    parts = await streamed(anna, await anna.thread(), with_a_tool(), "updates")
    updates = [part.data for part in parts if part.event == "updates"]
    assert [list(update) for update in updates] == [["model"], ["tools"], ["model"]]
    assert updates[1]["tools"]["messages"][0]["type"] == "tool"


async def test_message_pieces_are_true_deltas_that_make_up_the_reply(anna: Caller):
    parts = await streamed(anna, await anna.thread(), with_a_tool(), "messages-tuple")
    assert {part.event for part in parts} == {"metadata", "messages", "end"}
    chunks = [part.data[0] for part in parts if part.event == "messages"]
    replies: dict[str, str] = {}
    for chunk in chunks:
        if chunk["type"] == "AIMessageChunk":
            replies[chunk["id"]] = replies.get(chunk["id"], "") + chunk["content"]
    assert list(replies.values()) == ["I look. ", "There is nothing."]
    assert [chunk["tool_calls"][0]["name"] for chunk in chunks if chunk.get("tool_calls")] == ["ls"]
    assert all(part.data[1]["run_id"] == parts[0].data["run_id"] for part in parts if part.event == "messages")


async def test_partial_messages_accumulate_and_end_complete(anna: Caller):
    parts = await streamed(anna, await anna.thread(), scripts.script({"chunks": ["a", "b", "c"]})[1], "messages")
    assert parts[-2].event == "messages/complete"
    partial = [part.data[0]["content"] for part in parts if part.event == "messages/partial"]
    assert partial[-1] == "abc" == parts[-2].data[0]["content"]
    assert all("abc".startswith(content) for content in partial)


async def test_modes_together_say_what_each_says_alone(anna: Caller):
    place = await finished(anna, with_a_tool(), ALL)
    together = await stream_of(anna, place)
    for mode in ALL:
        alone = await stream_of(anna, place, mode)
        prefix = {"messages": "messages/", "messages-tuple": "messages"}.get(mode, mode)
        same = [e for e in together if e.name.startswith(prefix) and (mode == "messages") == ("/" in e.name)]
        assert [(e.name, e.data) for e in alone[1:-1]] == [(e.name, e.data) for e in same], mode


async def test_a_stream_without_modes_is_what_the_run_was_created_with(anna: Caller):
    place = await finished(anna, scripts.says("Hi.")[1], ["updates"])
    assert {event.name for event in await stream_of(anna, place)} == {"metadata", "updates", "end"}
    assert {event.name for event in await stream_of(anna, place, "")} == {"metadata", "updates", "end"}
    assert {event.name for event in await stream_of(anna, place, "values")} == {"metadata", "values", "end"}


@pytest.mark.parametrize("modes", [["messages-tuple"], ["values", "updates"], ALL])
async def test_taken_up_after_any_event_a_stream_gives_exactly_the_rest(anna: Caller, modes: list[str]):
    place = await finished(anna, with_a_tool(), ["values"])
    whole = await stream_of(anna, place, *modes)
    assert len({event.id for event in whole}) == len(whole)
    for position, event in enumerate(whole[:-1]):
        # As a client that reconnects does: with the id it saw, without the modes it had asked for.
        assert await stream_of(anna, place, after=str(event.id)) == whole[position + 1 :], event.id


async def test_taken_up_after_its_end_a_stream_only_ends(anna: Caller):
    place = await finished(anna, scripts.says("Hi.")[1], ["values"])
    end = (await stream_of(anna, place))[-1]
    assert [event.name for event in await stream_of(anna, place, after=str(end.id))] == ["end"]


async def without_pieces(caller: Caller, mode: str) -> tuple[str, list[ServerEvent]]:
    """A run's place and its stream, of which housekeeping has since removed the pieces of replies."""
    place = await finished(caller, with_a_tool(), [mode])
    whole = await stream_of(caller, place, mode)
    pieces = Event.objects.filter(run_id=place.rpartition("/")[2], type=EventType.DELTA)
    assert (await in_database(pieces.delete))[0] > 0
    return place, whole


@pytest.mark.parametrize(
    ("mode", "name"), [("values", "values"), ("updates", "updates"), ("messages", "messages/complete")]
)
async def test_taken_up_where_pieces_are_kept_no_more_a_stream_skips_nothing(anna: Caller, mode: str, name: str):
    place, whole = await without_pieces(anna, mode)
    for position, event in enumerate(whole[:-1]):
        rest = await stream_of(anna, place, after=str(event.id))
        complete = [one for one in whole[position + 1 :] if one.name in {name, "end"}]
        assert [one for one in rest if one.name in {name, "end"}] == complete, event.id


async def test_a_reply_whose_pieces_are_kept_no_more_comes_whole(anna: Caller):
    place, whole = await without_pieces(anna, "messages-tuple")
    texts: dict[str, str] = {}
    for event in whole[1:-1]:
        texts[event.data[0]["id"]] = texts.get(event.data[0]["id"], "") + event.data[0]["content"]
    assert len(texts) == 3
    for position, event in enumerate(whole[:-1]):
        rest = await stream_of(anna, place, after=str(event.id))
        told = [(one.data[0]["id"], one.data[0]["content"]) for one in rest if one.name == "messages"]
        assert len(dict(told)) == len(told)
        assert dict(told).items() <= texts.items(), event.id
        assert {one.data[0]["id"] for one in whole[position + 1 : -1]} <= set(dict(told)), event.id


@pytest.mark.parametrize("bad", ["-1", "999999999999", "99999999999999999999", "abc", "3.x", "٣", "1;2", "0"])
async def test_an_id_that_was_never_sent_begins_at_the_beginning(anna: Caller, bad: str):
    place = await finished(anna, scripts.says("Hi.")[1], ["values"])
    answer = await anna.http.get(f"{place}/stream", headers={"last-event-id": bad.encode()})
    assert events_of(answer.text) == await stream_of(anna, place)


async def test_partial_messages_taken_up_in_the_middle_of_a_running_reply_stay_whole(
    anna: Caller, model: ScriptedModel
):
    thread_id = await anna.thread()
    prompt = scripts.script({"chunks": ["one ", "two ", "three"], "gate": "middle", "gate_after": 2})[1]
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt), stream_mode="messages")
    last = None
    async for part in anna.sdk.runs.join_stream(thread_id, run["run_id"], stream_mode="messages"):
        last = part.id or last
        if part.event == "messages/partial" and part.data[0]["content"] == "one two ":
            break
    model.open_gate("middle")
    rest = await stream_of(anna, f"/threads/{thread_id}/runs/{run['run_id']}", after=str(last))
    assert [event.name for event in rest] == ["messages/partial", "messages/complete", "end"]
    assert [event.data[0]["content"] for event in rest[:-1]] == ["one two three", "one two three"]


async def test_a_failed_runs_stream_ends_with_its_error(anna: Caller):
    parts = await streamed(anna, await anna.thread(), scripts.flaky([500] * 9)[1], "values")
    assert [part.event for part in parts][-2:] == ["error", "end"]
    assert parts[-2].data["error"] == "model_server_error"
    assert parts[-2].data["message"]


async def test_a_cancelled_runs_stream_just_ends(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    script_id, prompt = scripts.hanging()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    stream = asyncio.create_task(stream_of(anna, f"/threads/{thread_id}/runs/{run['run_id']}"))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    await anna.sdk.runs.cancel(thread_id, run["run_id"])
    assert "error" not in [event.name for event in await stream]
    assert (await stream)[-1].name == "end"


async def test_a_waiting_runs_stream_says_nothing_of_the_run_before_it(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    await anna.sdk.runs.create(thread_id, LEAD, input=said(scripts.gated("before")[1]))
    run = await anna.sdk.runs.create(
        thread_id, LEAD, input=said(scripts.says("Mine.")[1]), stream_mode=["updates", "values"]
    )
    stream = asyncio.create_task(stream_of(anna, f"/threads/{thread_id}/runs/{run['run_id']}"))
    model.open_gate("before")
    events = await stream
    assert [event.name for event in events] == ["metadata", "values", "updates", "values", "end"]
    assert len(events[1].data["messages"]) == 3, "the state holds what the run before it said"
    assert contents(events[-2].data)[-1] == "Mine."


async def test_a_silent_stream_and_a_silent_wait_show_that_they_live(anna: Caller, model: ScriptedModel):
    async def first_bytes(path: str, gate: str, mark: str) -> str:
        body, text = asks(scripts.gated(gate)[1]), ""
        thread_id = await anna.thread()
        async with anna.http.stream("POST", f"/threads/{thread_id}/runs/{path}", json=body) as answer:
            if path == "stream":  # proxies keep streams back, and shut silent ones after a while
                assert (answer.headers["x-accel-buffering"], answer.headers["cache-control"]) == ("no", "no-store")
            async for piece in answer.aiter_text():
                text += piece
                if text.endswith(mark):
                    model.open_gate(gate)
        return text

    stream, wait = await asyncio.gather(
        first_bytes("stream", "silent-1", ": heartbeat\n\n"), first_bytes("wait", "silent-2", "\n")
    )
    assert ": heartbeat\n\n" in stream
    assert HEARTBEAT_SECONDS <= 15
    assert events_of(stream)[-1].name == "end"
    assert wait.startswith("\n{")


async def test_a_stream_and_a_join_end_when_their_thread_is_deleted(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    script_id, prompt = scripts.hanging()
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda seen: bool(seen.calls_of(script_id)))
    place = f"/threads/{thread_id}/runs/{run['run_id']}"

    def rows_gone() -> None:
        services.again_after_deadlock(lambda: services._delete_tree(UUID(thread_id)))

    async with (
        anna.http.stream("GET", f"{place}/stream") as stream,
        anna.http.stream("GET", f"{place}/join") as join,
    ):
        # Only the rows: the stop that a deletion begins with could end the run, and so its readers, in the usual way.
        await in_database(rows_gone)
        await asyncio.gather(stream.aread(), join.aread())
    assert [event.name for event in events_of(stream.text)][-2:] == ["error", "end"]
    assert join.json()["__error__"]["error"] == "run_deleted"
    assert (await anna.http.get(place)).status_code == 404


async def test_fifty_subscribers_get_everything_in_order(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    prompt = scripts.script({"tokens": 400, "gate": "crowd"})[1]
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt), stream_mode="messages-tuple")
    place = f"/threads/{thread_id}/runs/{run['run_id']}"

    async def subscribed(listening: asyncio.Event) -> list[ServerEvent]:
        text = ""
        async with anna.http.stream("GET", f"{place}/stream") as answer:
            async for piece in answer.aiter_text():
                text += piece
                listening.set()
        return events_of(text)

    listening = [asyncio.Event() for _ in range(50)]
    streams = [asyncio.create_task(subscribed(event)) for event in listening]
    await asyncio.gather(*[event.wait() for event in listening])
    model.open_gate("crowd")
    # A reader whose first read comes after the reply was stored gets it whole instead of in pieces: the words are one.
    expected = "".join(f"t{number} " for number in range(400))
    everyone = await asyncio.gather(*streams)
    for events in [*everyone, await subscribed(asyncio.Event())]:
        assert "".join(event.data[0]["content"] for event in events if event.name == "messages") == expected
        assert events[-1].name == "end"
