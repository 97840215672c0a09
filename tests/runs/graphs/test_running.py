"""A run of a graph of langgraph.json: the same life as every run, with its steps in our database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runs import services
from runs.agent_protocol.shapes import run_object
from runs.assistant_ids import assistant_id
from runs.models import GraphBlob, GraphCheckpoint, GraphWrite, Run, Thread
from runs.statuses import ErrorCode, RunStatus
from tests.runs.graphs import registered
from tests.runs.graphs.registered import gate, happened
from tests.runs.workers.house import Worker
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.graphs.registered import GraphHouse
    from tests.scripted_model import ScriptedModel

TALKER = """
model = chat_model()

def talk(state):
    return {"messages": [model.invoke(state["messages"])]}

graph = chain(MessagesState, talk)
"""
STEPS = """
class State(MessagesState):
    done: Annotated[list[str], operator.add]
    topic: str

def first(state):
    registered.happened.append("first")
    get_stream_writer()({"at": "first"})
    return {"done": ["first"], "topic": "owls"}

def second(state):
    registered.happened.append("second")
    registered.gate("second").wait(60)
    return {"done": ["second"], "messages": [AIMessage("about " + state["topic"])]}

graph = chain(State, first, second).compile()
"""
ASKS = """
class State(MessagesState):
    verdict: str

def ask(state):
    registered.happened.append("ask")
    return {"verdict": interrupt({"question": "Send it?"})}

def say(state):
    return {"messages": [AIMessage(f"you said {state['verdict']}")]}

graph = chain(State, ask, say)
"""


def test_a_graph_answers_in_chat_and_remembers_the_conversation(house: GraphHouse, model: ScriptedModel):
    house.graphs(talker=TALKER)
    _script_id, prompt = scripts.says("First answer.")
    run = house.answered("talker", prompt)
    assert (run.status, run.error) == (RunStatus.SUCCESS, "")
    assert [message["type"] for message in house.messages(run)] == ["human", "ai"]
    assert house.said(run) == "First answer."
    second = house.answered("talker", scripts.says("Second answer.")[1], thread=run.thread)
    assert second.status == RunStatus.SUCCESS
    assert [message["content"] for message in house.messages(run)][1::2] == ["First answer.", "Second answer."]
    assert [m["role"] for m in model.requests[-1].messages] == ["user", "assistant", "user"]
    assert run.model_calls == 1
    assert run.total_tokens is not None
    assert Thread.objects.get(pk=run.thread_id).status == "idle"


def test_tokens_values_updates_and_custom_parts_are_told_in_order(house: GraphHouse):
    house.graphs(talker=TALKER, steps=STEPS)
    gate("second").set()
    talk = house.answered("talker", scripts.tokens(20, rate=200)[1])
    deltas = "".join(event["text"] for event in house.events(talk) if event["event"] == "delta")
    assert deltas
    assert house.said(talk).startswith(deltas)
    run = house.answered("steps", "Go.")
    assert house.parts(run, "custom") == [{"at": "first"}]
    assert [list(part) for part in house.parts(run, "updates")] == [["first"], ["second"]]
    assert len(house.parts(run, "values")) == 4
    assert Thread.objects.get(pk=run.thread_id).values == {"done": ["first", "second"], "topic": "owls"}


def test_an_interrupt_ends_the_run_well_and_a_resume_goes_on_where_it_stopped(house: GraphHouse):
    house.graphs(asks=ASKS)
    run = house.answered("asks", "Draft it.")
    thread = Thread.objects.get(pk=run.thread_id)
    assert (run.status, thread.status) == (RunStatus.SUCCESS, "interrupted")
    shown: Any = GraphCheckpoint.objects.filter(thread=thread, ns="").order_by("-checkpoint_id")[0].shown
    assert shown["next"] == ["ask"]
    assert [one["value"] for task in shown["tasks"] for one in task["interrupts"]] == [{"question": "Send it?"}]
    assert [one["value"] for part in house.parts(run, "interrupts") for one in part] == [{"question": "Send it?"}]
    again = house.answered("asks", thread=thread, command={"resume": "yes"})
    thread.refresh_from_db()
    assert (again.status, thread.status) == (RunStatus.SUCCESS, "idle")
    assert house.words(run) == ["human: Draft it.", "ai: you said yes"]


def test_a_run_stops_before_or_after_a_node_and_goes_on_without_input(house: GraphHouse):
    house.graphs(steps=STEPS)
    gate("second").set()
    run = house.answered("steps", "Go.", interrupt_before=["second"])
    thread = Thread.objects.get(pk=run.thread_id)
    assert (run.status, thread.status, happened) == (RunStatus.SUCCESS, "interrupted", ["first"])
    house.answered("steps", thread=thread, go_on=True)
    thread.refresh_from_db()
    assert (thread.status, happened) == ("idle", ["first", "second"])
    after = house.answered("steps", "Again.", thread=thread, interrupt_after=["first"])
    assert (after.status, happened[2:]) == (RunStatus.SUCCESS, ["first"])


def test_a_run_that_lost_its_worker_goes_on_from_the_last_step_and_repeats_none(house: GraphHouse):
    house.graphs(steps=STEPS)
    run = house.start("steps", "Go.")
    with Worker(name="first"):
        house.until(lambda: happened == ["first", "second"])
    registered.gates.pop("second").set()  # the thread of the node that was left behind
    gate("second").set()
    house.let_leases_lapse(run)
    house.work(name="second")
    run = house.again(run)
    assert (run.status, run.attempt) == (RunStatus.SUCCESS, 2)
    assert happened == ["first", "second", "second"]  # what was under way is done again, what was done is not
    assert Thread.objects.get(pk=run.thread_id).values["done"] == ["first", "second"]
    assert house.words(run) == ["human: Go.", "ai: about owls"]


def test_a_run_that_is_handed_over_goes_on_elsewhere(house: GraphHouse):
    house.graphs(steps=STEPS)
    run = house.start("steps", "Go.")
    with Worker(name="first") as worker:
        house.until(lambda: happened == ["first", "second"])
        worker.stop()
    assert house.again(run).status == RunStatus.PENDING
    gate("second").set()
    house.work(name="second")
    assert house.again(run).status == RunStatus.SUCCESS
    assert happened.count("first") == 1


def test_a_zombies_steps_are_refused(house: GraphHouse):
    house.graphs(steps=STEPS)
    run = house.start("steps", "Go.")
    with Worker(name="first"):
        house.until(lambda: happened == ["first", "second"])
        house.let_leases_lapse(run)
        assert services.cancel_run(run_id=run.pk, by="ada")  # nobody seems to have it: it ends at once
        house.until_status(run, RunStatus.CANCELLED)
        before = GraphCheckpoint.objects.count(), GraphWrite.objects.count()
        gate("second").set()
        house.until(lambda: not house.again(run).queue_id)
    assert (GraphCheckpoint.objects.count(), GraphWrite.objects.count()) == before
    assert house.words(run) == ["human: Go."]


def test_a_cancel_ends_a_graph_in_the_middle_of_a_node(house: GraphHouse):
    house.graphs(steps=STEPS)
    run = house.start("steps", "Go.")
    with Worker():
        house.until(lambda: happened == ["first", "second"])
        assert services.cancel_run(run_id=run.pk, by="ada")
        house.until_ended(run)
    gate("second").set()
    assert house.again(run).status == RunStatus.CANCELLED
    assert Thread.objects.get(pk=run.thread_id).values == {"done": ["first"], "topic": "owls"}


def test_what_a_node_raises_is_one_error_that_keeps_secrets_to_itself(house: GraphHouse):
    house.graphs(
        fails="""
        def node(state):
            raise RuntimeError("no way in with " + os.environ["GRAPH_TEST_SECRET"])

        graph = chain(MessagesState, node)
        """
    )
    house.register({"fails": "./fails_graph.py:graph"}, env={"GRAPH_TEST_SECRET": "s3cr3t-of-the-graph"})
    run = house.answered("fails", "Go.")
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.GRAPH_FAILED)
    assert run.error == "RuntimeError: no way in with ***"
    assert Thread.objects.get(pk=run.thread_id).status == "error"


def test_a_graph_that_cannot_be_loaded_is_one_error(house: GraphHouse):
    house.graphs(broken="import no_such_module_here\ngraph = None\n")
    run = house.answered("broken", "Go.")
    assert (run.status, run.error_code) == (RunStatus.ERROR, ErrorCode.GRAPH_BROKEN)
    assert "no_such_module_here" in run.error


def test_a_graph_without_messages_takes_an_object_and_answers_with_its_state(house: GraphHouse):
    house.graphs(
        sums="""
        class Numbers(TypedDict):
            a: int
            b: int
            total: int

        def add(state):
            return {"total": state["a"] + state["b"]}

        graph = chain(Numbers, add)
        """
    )
    run = house.answered("sums", '{"a": 2, "b": 3}')
    assert run.status == RunStatus.SUCCESS
    assert '"total": 5' in house.said(run)
    program = house.answered("sums", input={"a": 1, "b": 1})
    assert Thread.objects.get(pk=program.thread_id).values["total"] == 2
    refused = house.answered("sums", "Add something.")
    assert (refused.error_code, "takes no messages" in refused.error) == (ErrorCode.GRAPH_BROKEN, True)


def test_a_graph_runs_beside_other_agents_on_a_thread_and_hears_what_was_said(house: GraphHouse, model: ScriptedModel):
    house.graphs(talker=TALKER)
    run = house.answer(scripts.says("From the lead.")[1])
    house.answered("talker", scripts.says("From the graph.")[1], thread=run.thread)
    contents = [str(message["content"]) for message in model.requests[-1].messages]
    assert "From the lead." in contents
    assert house.said(run) == "From the graph."


def test_deleting_a_thread_removes_its_checkpoints(house: GraphHouse):
    house.graphs(steps=STEPS)
    gate("second").set()
    run = house.answered("steps", "Go.")
    assert GraphCheckpoint.objects.filter(thread_id=run.thread_id).exists()
    services.delete_thread(thread_id=run.thread_id, by="ada")
    assert [rows.objects.count() for rows in (GraphCheckpoint, GraphBlob, GraphWrite)] == [0, 0, 0]


def test_a_subagent_that_is_a_graph_is_delegated_to(house: GraphHouse):
    house.graphs(talker=TALKER)
    child = scripts.says("The graph's finding.")
    _lead_id, prompt = scripts.delegate_to([child], subagent="talker")
    run = house.answer(prompt)
    assert run.status == RunStatus.SUCCESS
    (child_run,) = house.children(run)
    assert (child_run.agent, child_run.status) == ("talker", RunStatus.SUCCESS)
    (result,) = house.results(run)
    assert result["content"] == "The graph's finding."
    assert result["artifact"]["subagent_status"] == "completed"


@pytest.mark.parametrize("written", ["factory", "async_factory", "with_config", "context"])
def test_a_factory_makes_the_graph_of_each_run(house: GraphHouse, written: str):
    house.graphs(
        made=f"""
        from contextlib import asynccontextmanager

        def node(state):
            return {{"messages": [AIMessage("made")]}}

        def factory():
            return chain(MessagesState, node)

        async def async_factory():
            return chain(MessagesState, node).compile()

        def with_config(config):
            assert config["configurable"]["graph_id"] == "made"
            return chain(MessagesState, node)

        @asynccontextmanager
        async def context(config):
            yield chain(MessagesState, node)

        graph = {written}
        """
    )
    run = house.answered("made", "Go.")
    assert (run.error, house.said(run)) == ("", "made")


@pytest.mark.parametrize("agent", ["Talker", "talker"])
def test_a_graph_whose_name_has_capitals_keeps_it_in_the_chat(house: GraphHouse, agent: str):
    house.graphs(Talker=TALKER)
    thread = services.create_thread(owner=house.owner)
    run = services.start_run(thread=thread, text=scripts.says("Here.")[1], options={"agent_name": agent})
    house.work()
    run = house.again(run)
    assert (run.agent, run.status, run.definition["agent"]) == ("Talker", RunStatus.SUCCESS, "Talker")
    assert run_object(run)["assistant_id"] == assistant_id("Talker")
    followed = services.start_run(thread=thread, text=scripts.says("Again.")[1])
    assert Run.objects.get(pk=followed.pk).agent == "Talker"
