"""Graphs through the real SDK: assistants by name and id, interrupts and resumes, state, history and every stream."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5

import pytest
from django.conf import settings
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from runs.assistant_ids import assistant_id
from subagents import registry
from tests.runs.wire.callers import in_database, until_offered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runs.wire.callers import Caller

pytestmark = pytest.mark.usefixtures("transactional_db", "model", "worker")
SOURCE = """
from typing import TypedDict
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

class State(MessagesState):
    draft: str
    verdict: str

def write(state):
    get_stream_writer()({"progress": 1})
    return {"draft": "Dear Ada", "messages": [AIMessage("A draft.", id="draft-1")]}

def approve(state):
    return {"verdict": interrupt({"question": "Send it?", "draft": state["draft"]})}

def send(state):
    return {"messages": [AIMessage(f"Sent: {state['verdict']}.")]}

builder = StateGraph(State)
for node in (write, approve, send):
    builder.add_node(node.__name__, node)
builder.add_edge(START, "write")
builder.add_edge("write", "approve")
builder.add_edge("approve", "send")
builder.add_edge("send", END)
graph = builder.compile()
"""
WITHIN = """
import letters
from langgraph.graph import END, START, StateGraph

builder = StateGraph(letters.State)
builder.add_node("letters", letters.builder.compile())
builder.add_edge(START, "letters")
builder.add_edge("letters", END)
graph = builder.compile()
"""
LANGGRAPH_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
ASKED = {"messages": [{"role": "user", "content": "Write to Ada."}]}


@pytest.fixture(scope="module")
def registered(model: Any) -> Iterator[None]:
    """A graph named `letters`, registered beside the configuration of these tests."""
    folder = settings.CONFIG_FILE.parent
    (folder / "letters.py").write_text(dedent(SOURCE), encoding="utf-8")
    file = folder / "langgraph.json"
    (folder / "post.py").write_text(dedent(WITHIN), encoding="utf-8")
    letters = "./letters.py:graph"
    graphs = {"letters": letters, "NightLetters": letters, "post": "./post.py:graph"}
    file.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}), encoding="utf-8")
    yield
    file.unlink()


@pytest.fixture(autouse=True)
async def letters(registered: None, anna: Caller) -> None:
    await until_offered(anna, "letters")


async def interrupted(caller: Caller) -> str:
    thread_id = await caller.thread()
    await caller.sdk.runs.wait(thread_id, "letters", input=ASKED)
    return thread_id


async def test_a_dynamic_interrupt_is_a_finished_run_on_an_interrupted_thread(anna: Caller):
    thread_id = await anna.thread()
    told = await anna.sdk.runs.wait(thread_id, "letters", input=ASKED)
    assert [one["value"]["question"] for one in told["__interrupt__"]] == ["Send it?"]
    (run,) = await anna.sdk.runs.list(thread_id)
    assert await anna.sdk.runs.join(thread_id, run["run_id"]) == told
    thread = await anna.sdk.threads.get(thread_id)
    assert (run["status"], thread["status"]) == ("success", "interrupted")
    assert run["assistant_id"] == assistant_id("letters")
    ((asked,),) = thread["interrupts"].values()
    assert asked["value"] == {"question": "Send it?", "draft": "Dear Ada"}
    assert thread["values"]["draft"] == "Dear Ada"
    state = await anna.sdk.threads.get_state(thread_id)
    assert (state["next"], state["interrupts"][0]["value"]["question"]) == (["approve"], "Send it?")
    assert state["tasks"][0]["name"] == "approve"


async def test_a_resume_goes_on_by_the_id_of_the_assistant(anna: Caller):
    thread_id = await interrupted(anna)
    values: Any = await anna.sdk.runs.wait(thread_id, assistant_id("letters"), command={"resume": "yes"})
    assert [message["content"] for message in values["messages"]] == ["Write to Ada.", "A draft.", "Sent: yes."]
    thread = await anna.sdk.threads.get(thread_id)
    assert (thread["status"], thread["interrupts"], thread["values"]["verdict"]) == ("idle", {}, "yes")


async def test_static_interrupts_stop_before_a_node_and_null_goes_on(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, "letters", input=ASKED, interrupt_before=["write"])
    assert (await anna.sdk.threads.get(thread_id))["status"] == "interrupted"
    assert (await anna.sdk.threads.get_state(thread_id))["next"] == ["write"]
    await anna.sdk.runs.wait(thread_id, "letters", input=None)
    assert (await anna.sdk.threads.get_state(thread_id))["next"] == ["approve"]


async def test_every_mode_streams_what_the_graph_says(anna: Caller):
    thread_id = await anna.thread()
    modes = ["values", "updates", "custom", "messages-tuple"]
    parts = [part async for part in anna.sdk.runs.stream(thread_id, "letters", input=ASKED, stream_mode=modes)]
    assert (parts[0].event, parts[-1].event) == ("metadata", "end")
    assert [part.data for part in parts if part.event == "custom"] == [{"progress": 1}]
    updates = [part.data for part in parts if part.event == "updates"]
    assert updates[0]["write"]["draft"] == "Dear Ada"
    assert updates[1]["__interrupt__"][0]["value"]["question"] == "Send it?"
    values = [part.data for part in parts if part.event == "values"]
    assert values[-1] == (await anna.sdk.threads.get(thread_id))["values"]
    assert any(part.data[0]["content"] == "A draft." for part in parts if part.event == "messages")


async def test_steps_are_streamed_to_who_asks_for_them_and_again_to_who_joins_later(anna: Caller):
    thread_id = await anna.thread()
    modes = ["tasks", "checkpoints", "debug", "events"]
    parts = [part async for part in anna.sdk.runs.stream(thread_id, "letters", input=ASKED, stream_mode=modes)]
    told = {mode: [part.data for part in parts if part.event == mode] for mode in modes}
    assert [(task["name"], "result" in task) for task in told["tasks"]] == [
        ("write", False),
        ("write", True),
        ("approve", False),
        ("approve", True),
    ]
    assert told["tasks"][-1]["interrupts"][0]["value"]["question"] == "Send it?"
    states = await anna.sdk.threads.get_history(thread_id)
    ids = [one["config"]["configurable"]["checkpoint_id"] for one in told["checkpoints"]]
    assert ids == [state["checkpoint_id"] for state in reversed(states)]
    assert {one["type"] for one in told["debug"]} == {"checkpoint", "task", "task_result"}
    started = [one["name"] for one in told["events"] if one["event"] == "on_chain_start"]
    assert [name for name in started if name in {"letters", "write", "approve"}] == ["letters", "write", "approve"]
    assert all(one["metadata"]["thread_id"] == thread_id for one in told["events"])
    (run,) = await anna.sdk.runs.list(thread_id)
    later = [part async for part in anna.sdk.runs.join_stream(thread_id, run["run_id"], stream_mode="tasks")]
    assert [part.data for part in later if part.event == "tasks"] == told["tasks"]


async def test_modes_of_graphs_are_refused_where_nothing_would_come(anna: Caller):
    thread_id = await anna.thread()
    with pytest.raises(UnprocessableEntityError, match=r"an agent streams values.* debug is for graphs"):
        await anna.sdk.runs.create(thread_id, "lead_agent", input=ASKED, stream_mode=["values", "debug"])
    run = await anna.sdk.runs.create(thread_id, "letters", input=ASKED)
    await anna.sdk.runs.join(thread_id, run["run_id"])
    answer = await anna.http.get(f"/threads/{thread_id}/runs/{run['run_id']}/stream?stream_mode=tasks")
    assert (answer.status_code, "was not started to stream tasks" in answer.text) == (422, True)


@pytest.mark.parametrize("modes", [["values", "updates", "tasks"], ["updates", "events"]])
@pytest.mark.parametrize("wanted", [True, False])
async def test_a_graph_within_is_streamed_with_its_path_to_who_asks_for_it(
    anna: Caller, modes: list[str], wanted: bool
):
    options: Any = {"stream_mode": modes, "stream_subgraphs": wanted}
    thread_id = await anna.thread()
    parts = [part async for part in anna.sdk.runs.stream(thread_id, "post", input=ASKED, **options)]
    within = [part for part in parts if "|" in part.event]
    assert {part.event.partition("|")[0] for part in within} == ({*modes} - {"events"} if wanted else set())
    assert {part.event.partition("|")[2].partition(":")[0] for part in within} <= {"letters"}
    drafts = [part.data["write"] for part in within if part.event.startswith("updates") and "write" in part.data]
    assert [draft["draft"] for draft in drafts] == (["Dear Ada"] if wanted else [])
    state = await anna.sdk.threads.get_state(thread_id)
    assert (state["next"], state["interrupts"][0]["value"]["question"]) == (["letters"], "Send it?")
    values: Any = await anna.sdk.runs.wait(thread_id, "post", command={"resume": "yes"})
    assert (values["messages"][-1]["content"], values["verdict"]) == ("Sent: yes.", "yes")


async def test_whoever_waits_for_a_graph_or_streams_it_is_told_all_of_its_state(anna: Caller):
    thread_id = await anna.thread()
    values: Any = await anna.sdk.runs.wait(thread_id, "letters", input=ASKED)
    assert values.pop("__interrupt__")
    assert values == (await anna.sdk.threads.get(thread_id))["values"]
    assert values["draft"] == "Dear Ada"
    resume: Any = {"command": {"resume": "yes"}, "stream_mode": "values"}
    parts = [part async for part in anna.sdk.runs.stream(thread_id, "letters", **resume)]
    assert {part.data["draft"] for part in parts if part.event == "values"} == {"Dear Ada"}


async def test_history_lists_every_step_and_a_fork_begins_at_one(anna: Caller):
    thread_id = await interrupted(anna)
    newest, *_earlier = states = await anna.sdk.threads.get_history(thread_id)
    assert [state["next"] for state in states] == [["approve"], ["write"], ["__start__"]]
    assert newest["parent_checkpoint_id"] == states[1]["checkpoint_id"]
    at = states[1]["checkpoint_id"]
    assert (await anna.sdk.threads.get_state(thread_id, checkpoint_id=at))["next"] == ["write"]
    await anna.sdk.runs.wait(thread_id, "letters", input=None, checkpoint_id=at)
    assert len(await anna.sdk.threads.get_history(thread_id)) > len(states)
    thread = await anna.sdk.threads.get(thread_id)
    assert [message["content"] for message in thread["values"]["messages"]] == ["Write to Ada.", "A draft."]
    with pytest.raises(NotFoundError):
        await anna.sdk.runs.create(thread_id, "letters", input=None, checkpoint_id=str(uuid4()))


async def test_a_resume_that_is_taken_back_leaves_the_thread_interrupted(anna: Caller):
    thread_id = await interrupted(anna)
    before = await anna.sdk.threads.get_state(thread_id)
    resume = {"command": {"resume": "yes"}, "after_seconds": 600}
    run = await anna.sdk.runs.create(thread_id, "letters", **resume)
    await anna.sdk.runs.cancel(thread_id, run["run_id"], action="rollback")
    assert await anna.sdk.threads.get_state(thread_id) == before
    assert (await anna.sdk.threads.get(thread_id))["status"] == "interrupted"


async def test_the_state_is_changed_as_a_node_would(anna: Caller):
    thread_id = await interrupted(anna)
    answer = await anna.sdk.threads.update_state(thread_id, {"verdict": "by hand"}, as_node="approve")
    state = await anna.sdk.threads.get_state(thread_id)
    assert state["checkpoint_id"] == answer["checkpoint_id"]
    assert (state["next"], state["values"]["verdict"]) == (["send"], "by hand")
    values: Any = await anna.sdk.runs.wait(thread_id, "letters", input=None)
    assert values["messages"][-1]["content"] == "Sent: by hand."


async def test_bad_requests_of_graphs_name_the_field(anna: Caller):
    thread_id = await anna.thread()
    for options, field in (
        ({"interrupt_before": [3]}, "interrupt_before"),
        ({"config": {"recursion_limit": 0}}, "recursion_limit"),
    ):
        with pytest.raises(UnprocessableEntityError, match=field):
            await anna.sdk.runs.create(thread_id, "letters", input=ASKED, **options)


async def test_somebody_elses_graph_thread_does_not_exist(anna: Caller, bert: Caller):
    thread_id = await interrupted(anna)
    response = await bert.post(f"/threads/{thread_id}/state", {"values": {"verdict": "mine"}})
    assert response.status_code == 404
    assert (await bert.http.get(f"/threads/{thread_id}/state")).status_code == 404


async def test_a_second_run_is_rejected_while_one_is_active(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.runs.create(thread_id, "letters", input=ASKED, after_seconds=600)
    with pytest.raises(ConflictError):
        await anna.sdk.runs.create(thread_id, "letters", input=ASKED, multitask_strategy="reject")
    (run,) = await anna.sdk.runs.list(thread_id)
    await anna.sdk.runs.cancel(thread_id, run["run_id"])
    assert await in_database(lambda: registry.current().lead("letters").is_graph)


@pytest.mark.parametrize("spelling", ["NightLetters", "nightletters", assistant_id("NightLetters")])
async def test_a_name_with_capitals_is_one_assistant_however_it_is_called(anna: Caller, spelling: str):
    own = assistant_id("NightLetters")
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, spelling, input=ASKED)
    await anna.sdk.runs.join(thread_id, run["run_id"])
    (listed,) = await anna.sdk.runs.list(thread_id)
    assert run["assistant_id"] == listed["assistant_id"] == own == str(uuid5(LANGGRAPH_NAMESPACE, "NightLetters"))
    thread = await anna.sdk.threads.get(thread_id)
    assert thread["metadata"].get("graph_id", "NightLetters") == "NightLetters"


async def test_a_name_with_capitals_is_listed_as_it_is_written(anna: Caller):
    own = assistant_id("NightLetters")
    (found,) = await anna.sdk.assistants.search(graph_id="NightLetters")
    assert (found["assistant_id"], found["graph_id"]) == (own, "NightLetters")
    assert (await anna.sdk.assistants.get(own))["graph_id"] == "NightLetters"
    assert own in [one["assistant_id"] for one in await anna.sdk.assistants.search(limit=100)]
    mine = await anna.sdk.assistants.create("NightLetters", name="Mine")
    assert mine["graph_id"] == "NightLetters"
    other = await anna.sdk.assistants.create("nightletters")
    assert (other["graph_id"], other["name"]) == ("NightLetters", "nightletters")
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, mine["assistant_id"], input=ASKED)
    assert run["assistant_id"] == mine["assistant_id"]
    values: Any = await anna.sdk.runs.join(thread_id, run["run_id"])
    assert values["messages"][-1]["content"] == "A draft."
    another = await anna.thread()
    chosen = await anna.sdk.runs.create(another, "lead_agent", input=ASKED, context={"agent_name": "nightletters"})
    assert chosen["assistant_id"] == own
    await anna.sdk.runs.join(another, chosen["run_id"])
