"""A thread's state through the real SDK: read, changed by hand, gone back to, and what the model is told then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langgraph_sdk.errors import BadRequestError, ConflictError, NotFoundError

from tests.runs.wire.callers import contents, in_database, said, unknown_id
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db")
LEAD = "lead_agent"


def human(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "human", "content": text, **fields}


def reply(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "ai", "content": text, **fields}


async def put(caller: Caller, thread_id: str, *messages: dict[str, Any], **options: Any) -> str:
    """Change the messages of a thread; the id of the checkpoint that made."""
    answer = await caller.sdk.threads.update_state(thread_id, {"messages": list(messages)}, **options)
    return str(answer["checkpoint_id"])


async def words_of(caller: Caller, thread_id: str) -> list[str]:
    return contents((await caller.sdk.threads.get_state(thread_id))["values"])


async def test_a_thread_without_a_message_has_an_empty_state(anna: Caller):
    thread_id = await anna.thread()
    state = await anna.sdk.threads.get_state(thread_id)
    assert (state["values"], state["next"], state["tasks"], state["checkpoint"]) == ({}, [], [], None)
    assert await anna.sdk.threads.get_history(thread_id) == []


@pytest.mark.usefixtures("worker", "model")
async def test_each_step_of_a_run_is_a_checkpoint_with_a_parent(anna: Caller):
    thread_id = (await anna.sdk.threads.create(metadata={"topic": "rome"}))["thread_id"]
    values = await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Rome.")[1]))
    (run,) = await anna.sdk.runs.list(thread_id)
    state = await anna.sdk.threads.get_state(thread_id)
    assert (state["values"], state["next"]) == (values, [])
    newest, oldest = await anna.sdk.threads.get_history(thread_id)
    assert newest == state
    assert (oldest["next"], oldest["tasks"][0]["name"]) == (["model"], "model")
    assert newest["parent_checkpoint"] == oldest["checkpoint"]
    assert oldest["parent_checkpoint"] is None
    assert [one["metadata"]["source"] for one in (newest, oldest)] == ["loop", "input"]
    assert {one["metadata"]["run_id"] for one in (newest, oldest)} == {run["run_id"]}
    assert (newest["metadata"]["topic"], newest["metadata"]["step"]) == ("rome", 1)
    assert newest["checkpoint"] == {
        "thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": newest["checkpoint_id"],
    }  # fmt: skip
    assert newest["created_at"] > oldest["created_at"]


async def test_the_state_at_a_checkpoint_is_read_by_its_id_or_as_an_object(anna: Caller):
    thread_id = await anna.thread()
    first = await put(anna, thread_id, human("one"))
    await put(anna, thread_id, reply("two"))
    by_id = await anna.sdk.threads.get_state(thread_id, checkpoint_id=first)
    place = {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": first, "checkpoint_map": None}
    assert by_id == await anna.sdk.threads.get_state(thread_id, checkpoint=place, subgraphs=True)
    assert (contents(by_id["values"]), by_id["next"]) == (["one"], ["model"])
    selected = (await anna.http.get(f"/threads/{thread_id}/state?select=values.messages&select=next")).json()
    assert set(selected) == {"values", "next"}


async def test_a_checkpoint_of_another_thread_or_of_nothing_does_not_exist(anna: Caller):
    thread_id, other = await anna.thread(), await anna.thread()
    await put(anna, thread_id, human("one"))
    foreign = await put(anna, other, human("one"))
    for checkpoint in (foreign, unknown_id()):
        with pytest.raises(NotFoundError):
            await anna.sdk.threads.get_state(thread_id, checkpoint_id=checkpoint)
        with pytest.raises(NotFoundError):
            await anna.sdk.threads.update_state(thread_id, {"a": 1}, checkpoint_id=checkpoint)
        with pytest.raises(NotFoundError):
            await anna.sdk.threads.get_history(thread_id, before=checkpoint)
    with pytest.raises(NotFoundError):
        await anna.sdk.threads.get_state(thread_id, checkpoint={"checkpoint_ns": "sub", "checkpoint_id": foreign})


async def test_messages_are_merged_by_id(anna: Caller):
    thread_id = await anna.thread()
    await put(anna, thread_id, human("one", id="a"), reply("two", id="b"), human("three", id="c"))
    await put(anna, thread_id, reply("TWO", id="b"), human("four", id="d"))
    assert await words_of(anna, thread_id) == ["one", "TWO", "three", "four"]
    await put(anna, thread_id, {"type": "remove", "id": "a"})
    state = await anna.sdk.threads.get_state(thread_id)
    assert [message["id"] for message in state["values"]["messages"]] == ["b", "c", "d"]
    await put(anna, thread_id, {"role": "remove", "id": "__remove_all__"}, {"role": "user", "content": "new"})
    assert await words_of(anna, thread_id) == ["new"]
    history = [contents(state["values"]) for state in await anna.sdk.threads.get_history(thread_id, limit=100)]
    assert ["one", "two", "three"] in history


async def test_a_message_that_is_not_there_cannot_be_removed(anna: Caller):
    thread_id = await anna.thread()
    await put(anna, thread_id, human("one", id="a"))
    answer = await anna.post(f"/threads/{thread_id}/state", {"values": {"messages": [{"type": "remove", "id": "z"}]}})
    assert (answer.status_code, answer.json()["metadata"]["field"]) == (422, "values.messages")
    assert await words_of(anna, thread_id) == ["one"]


async def test_other_values_are_kept_and_outlive_a_change_of_messages(anna: Caller):
    thread_id = await anna.thread()
    await put(anna, thread_id, human("one", id="a"))
    await anna.sdk.threads.update_state(thread_id, {"note": "x", "plan": {"n": 1}}, as_node="model")
    await put(anna, thread_id, human("ONE", id="a"))
    state = await anna.sdk.threads.get_state(thread_id)
    assert (contents(state["values"]), state["values"]["note"], state["values"]["plan"]) == (["ONE"], "x", {"n": 1})
    assert (await anna.sdk.threads.get(thread_id))["values"] == state["values"]
    await anna.sdk.threads.update_state(thread_id, [{"note": "y"}, {"note": "z", "more": True}])
    values = (await anna.sdk.threads.get(thread_id))["values"]
    assert (values["note"], values["more"], values["plan"]) == ("z", True, {"n": 1})


async def test_an_update_without_values_is_one_more_checkpoint(anna: Caller):
    thread_id = await anna.thread()
    first = await put(anna, thread_id, human("one"))
    again = await anna.sdk.threads.update_state(thread_id, None)
    assert again["checkpoint_id"] != first
    assert again["checkpoint"] == again["configurable"]
    state = await anna.sdk.threads.get_state(thread_id)
    assert (state["checkpoint_id"], contents(state["values"])) == (again["checkpoint_id"], ["one"])
    assert state["parent_checkpoint_id"] == first


async def test_a_fork_goes_on_from_an_earlier_checkpoint_and_the_history_lists_both_branches(anna: Caller):
    thread_id = await anna.thread()
    root = await put(anna, thread_id, human("one"))
    left = await put(anna, thread_id, reply("two"))
    taken = await put(anna, thread_id, reply("other"), checkpoint_id=root)
    assert await words_of(anna, thread_id) == ["one", "other"]
    history = await anna.sdk.threads.get_history(thread_id)
    assert [state["checkpoint_id"] for state in history] == [taken, left, root]
    assert {state["parent_checkpoint_id"] for state in history[:2]} == {root}
    of_left = await anna.sdk.threads.get_history(thread_id, checkpoint={"checkpoint_id": left})
    assert [state["checkpoint_id"] for state in of_left] == [left, root]
    await put(anna, thread_id, human("again"), checkpoint={"checkpoint_ns": "", "checkpoint_id": left})
    assert await words_of(anna, thread_id) == ["one", "two", "again"]


async def test_a_history_is_read_in_pages_and_by_metadata(anna: Caller):
    thread_id = await anna.thread()
    made = [await put(anna, thread_id, human(str(n))) for n in range(5)]
    first = await anna.sdk.threads.get_history(thread_id, limit=2)
    assert [state["checkpoint_id"] for state in first] == made[:2:-1]
    for before in (made[3], {"checkpoint_id": made[3]}, {"configurable": {"checkpoint_id": made[3]}}):
        rest = await anna.sdk.threads.get_history(thread_id, limit=2, before=before)
        assert [state["checkpoint_id"] for state in rest] == [made[2], made[1]]
    (third,) = await anna.sdk.threads.get_history(thread_id, metadata={"step": 2, "source": "update"})
    assert third["checkpoint_id"] == made[2]
    assert await anna.sdk.threads.get_history(thread_id, metadata={"source": "loop"}) == []
    got = (await anna.http.get(f"/threads/{thread_id}/history?limit=1")).json()
    assert [state["checkpoint_id"] for state in got] == made[:3:-1]


@pytest.mark.usefixtures("worker")
async def test_the_next_model_call_gets_the_state_as_it_was_put(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("Wrong.")[1]))
    (answer, asked) = await anna.sdk.threads.get_history(thread_id)
    message = answer["values"]["messages"][-1]
    await put(anna, thread_id, {**message, "content": "Corrected by hand."})
    script, prompt = scripts.says("Fine.")
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(prompt))
    (call,) = model.calls_of(script)
    assert "Corrected by hand." in str(call.messages)
    assert "Wrong." not in [m.get("content") for m in call.messages if m["role"] == "assistant"]
    await put(anna, thread_id, human("and then"), checkpoint_id=asked["checkpoint_id"])
    script, prompt = scripts.says("Now.")
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(prompt))
    (call,) = model.calls_of(script)
    assert "and then" in str(call.messages)
    assert "Fine." not in [m.get("content") for m in call.messages if m["role"] == "assistant"]


@pytest.mark.usefixtures("worker")
async def test_a_state_is_not_changed_while_a_run_is_active(anna: Caller, model: ScriptedModel):
    thread_id = await anna.thread()
    script, prompt = scripts.gated("busy-state")
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda m: bool(m.calls_of(script)), 60)
    with pytest.raises(ConflictError):
        await put(anna, thread_id, human("now"))
    assert (await anna.sdk.threads.get_state(thread_id))["next"] == ["model"]
    model.open_gate("busy-state")
    await anna.sdk.runs.join(thread_id, run["run_id"])
    await put(anna, thread_id, human("now"))


async def test_a_node_the_graph_does_not_have_is_refused(anna: Caller):
    thread_id = await anna.thread()
    with pytest.raises(BadRequestError, match="Node nope does not exist"):
        await anna.sdk.threads.update_state(thread_id, {"a": 1}, as_node="nope")


async def test_open_calls_are_the_tasks_of_the_tools(anna: Caller):
    thread_id = await anna.thread()
    calls = [{"id": "c1", "name": "ls", "args": {}}, {"id": "c2", "name": "ls", "args": {}}]
    await put(anna, thread_id, human("look"), reply("", tool_calls=calls))
    state = await anna.sdk.threads.get_state(thread_id, subgraphs=True)
    assert state["next"] == ["tools", "tools"]
    await put(anna, thread_id, {"type": "tool", "tool_call_id": "c1", "content": "a.txt"})
    again = await anna.sdk.threads.get_state(thread_id)
    assert again["next"] == ["tools"]
    assert again["tasks"][0]["id"] != state["tasks"][1]["id"]


async def test_text_that_no_database_takes_is_harmless_in_state_and_metadata(anna: Caller):
    thread_id = await anna.thread()
    await put(anna, thread_id, human("nul \x00"))
    raw = '{"values": {"no\\u0000te": "half \\ud83d", "messages": [{"role": "user", "content": "\\ud83d\\u0000"}]}}'
    headers = {"content-type": "application/json"}
    answer = await anna.http.post(f"/threads/{thread_id}/state", content=raw, headers=headers)
    assert answer.status_code == 200, answer.text
    values = (await anna.sdk.threads.get(thread_id))["values"]
    assert len(values["messages"]) == 2
    assert "\x00" not in str(values)
    assert (await anna.sdk.threads.search(values={"no\x00te": "x"})) == []


async def test_values_have_a_bound(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.threads.update_state(thread_id, {"a": "x" * 200_000})
    answer = await anna.post(f"/threads/{thread_id}/state", {"values": {"b": "x" * 200_000}})
    assert (answer.status_code, answer.json()["metadata"]["field"]) == (422, "values")
    assert "b" not in (await anna.sdk.threads.get(thread_id))["values"]


async def test_what_a_rollback_took_is_not_in_the_history(anna: Caller):
    from uuid import UUID

    from runs.lifecycle import Rewind, commit_one
    from runs.models import Message

    thread_id = await anna.thread()
    first = await put(anna, thread_id, human("one"))
    second = await put(anna, thread_id, human("two"))

    def rolled_back() -> None:
        to = Message.objects.filter(thread_id=thread_id).order_by("seq").values_list("seq", flat=True)[0]
        commit_one(Rewind(thread_id=UUID(thread_id), owner_id=anna.user.pk, to=to, forget=True))

    await in_database(rolled_back)
    assert [state["checkpoint_id"] for state in await anna.sdk.threads.get_history(thread_id)] == [first]
    with pytest.raises(NotFoundError):
        await anna.sdk.threads.get_state(thread_id, checkpoint_id=second)
