from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from engine.agent import AgentSpec, Step, TextDelta, build, compiled, drive
from engine.config.schema import ModelConfig
from engine.models.registry import ModelRegistry
from tests.engine.fakes import Children, Say, ScriptedChat, done, echo, limits, play, run_context


async def test_pieces_carry_the_id_of_the_reply_they_belong_to_and_add_up_to_it():
    outcome = await play(["Here is the answer."])
    deltas = [one for one in outcome.yielded if isinstance(one, TextDelta)]
    assert len(deltas) == 4
    assert {delta.message_id for delta in deltas} == {outcome.replies[0].id}
    assert "".join(delta.text for delta in deltas) == outcome.replies[0].text


async def test_each_reply_and_each_tool_result_is_a_step_of_its_own_in_order():
    outcome = await play([Say("Looking.", calls=[("echo", {"text": "a"}), ("echo", {"text": "b"})]), "Done."])
    assert [[type(message) for message in step] for step in outcome.steps] == [
        [AIMessage],
        [ToolMessage],
        [ToolMessage],
        [AIMessage],
    ]
    assert [result.content for result in outcome.results] == ["echo a", "echo b"]


async def test_every_stored_message_has_an_id_of_its_own():
    outcome = await play([Say(calls=[("echo", {"text": "a"})]), Say(calls=[("echo", {"text": "b"})]), "Done."])
    ids = [message.id for message in outcome.messages]
    assert all(ids)
    assert len(set(ids)) == len(ids) == 5


async def test_the_tools_of_a_reply_wait_until_the_consumer_has_taken_the_reply():
    started = []

    @tool
    async def effect() -> str:
        """Do something that cannot be undone."""
        started.append(True)
        return "done"

    agent = build(ScriptedChat(replies=[Say(calls=[("effect", {})]), "Done."]), [effect], is_subagent=True)
    run = drive(agent, [HumanMessage("Go.")], run_context(is_subagent=True))
    async with aclosing(run):
        reply = await anext(run)
        for _ in range(50):
            await asyncio.sleep(0)
        assert isinstance(reply, Step)
        assert started == []
        await anext(run)
        assert started == [True]


async def test_the_next_model_call_waits_until_the_consumer_has_taken_the_result():
    model = ScriptedChat(replies=[Say(calls=[("echo", {"text": "a"})]), "Done."])
    run = drive(build(model, [echo], is_subagent=True), [HumanMessage("Go.")], run_context(is_subagent=True))
    async with aclosing(run):
        await anext(run)
        assert isinstance((await anext(run)).messages[0], ToolMessage)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(model.seen) == 1


async def test_a_tool_result_is_handed_on_while_its_siblings_still_run():
    release = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait for the test."""
        await release.wait()
        return "slow"

    replies = [Say(calls=[("slow", {}), ("echo", {"text": "quick"})]), "Done."]
    run = drive(
        build(ScriptedChat(replies=replies), [slow, echo], is_subagent=True),
        [HumanMessage("Go.")],
        run_context(is_subagent=True),
    )
    async with aclosing(run):
        await anext(run)
        assert (await anext(run)).messages[0].content == "echo quick"
        release.set()
        assert (await anext(run)).messages[0].content == "slow"


async def test_cancelling_the_consumer_ends_the_running_tools():
    entered, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def endless() -> str:
        """Never end."""
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    agent = build(ScriptedChat(replies=[Say(calls=[("endless", {})])]), [endless], is_subagent=True)

    async def consume():
        async for _ in drive(agent, [HumanMessage("Go.")], run_context(is_subagent=True)):
            pass

    consumer = asyncio.create_task(consume())
    await entered.wait()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert ended.is_set()


async def test_thirty_leads_at_once_share_one_compiled_agent_without_mixing():
    model = ScriptedChat(replies=[lambda messages: Say(f"for {messages[-1].text} by {messages[0].text}")])
    agent = build(model, [], is_subagent=False)

    async def lead(number):
        context = run_context(run_id=str(number), system_prompt=f"lead {number}")
        steps = [one async for one in drive(agent, [HumanMessage(f"q{number}")], context) if isinstance(one, Step)]
        return str(steps[-1].messages[0].text).strip(), context.counters.model_calls

    answers = await asyncio.gather(*(lead(number) for number in range(30)))
    assert answers == [(f"for q{number} by lead {number}", 1) for number in range(30)]


async def test_a_transcript_whose_calls_are_answered_continues_where_it_stopped():
    first = await play([Say("One.", calls=[("echo", {"text": "a"})]), "Two."])
    kept = [HumanMessage("Go."), *first.messages[:2]]
    context = run_context()
    context.counters.model_calls = 1
    second = await play(["Two."], messages=kept, context=context)
    assert [message.type for message in second.model.seen[0].messages] == ["system", "human", "ai", "tool"]
    assert second.answer == "Two."
    assert context.counters.model_calls == 2


async def test_the_system_prompt_reaches_the_model_byte_for_byte_and_alone():
    prompt = 'You {lead} %s {{x}} ${HOME} {% if %} "quotes"\n'
    outcome = await play(["ok"], context=run_context(system_prompt=prompt))
    system = [message for message in outcome.model.seen[0].messages if isinstance(message, SystemMessage)]
    assert [message.content for message in system] == [prompt]
    assert outcome.model.seen[0].messages[0] is not None
    assert outcome.model.seen[0].messages[0].type == "system"


async def test_what_a_tools_own_model_says_is_no_piece_of_the_reply():
    inner = ScriptedChat(replies=["inner words"])

    @tool
    async def think() -> str:
        """Ask another model."""
        return str((await inner.ainvoke("x")).text)

    outcome = await play([Say(calls=[("think", {})]), "Outer."], tools=[think])
    assert [one.text for one in outcome.yielded if isinstance(one, TextDelta)] == ["Outer. "]


async def test_a_failing_model_call_comes_through_to_the_consumer():
    with pytest.raises(ConnectionError):
        await play([ConnectionError("refused")])


async def test_a_run_that_has_no_turn_left_makes_no_model_call():
    context = run_context(limits=limits(max_turns=2))
    context.counters.model_calls = 2
    outcome = await play(["never"], context=context)
    assert outcome.yielded == []
    assert outcome.model.seen == []
    assert context.counters.stop_reason == "turn_capped"


async def test_long_runs_end_by_their_limit_and_never_by_the_graph():
    outcome = await play([Say(calls=[("echo", {"text": "again"})])], context=run_context(limits=limits(max_turns=60)))
    assert len(outcome.model.seen) == 60
    assert outcome.context.counters.stop_reason == "turn_capped"


def registry(**changes):
    fields = {"name": "demo", "use": "engine.models.demo:DemoChatModel"}
    return ModelRegistry([ModelConfig(**(fields | changes))], {})


async def test_agents_are_compiled_once_for_each_definition_and_configuration():
    models = registry()
    lead, child = AgentSpec("demo"), AgentSpec("demo", is_subagent=True)
    assert compiled(lead, models) is compiled(AgentSpec("demo"), models)
    assert compiled(lead, models) is not compiled(child, models)
    assert compiled(lead, models) is not compiled(lead, registry())


def test_two_event_loops_never_share_a_compiled_agent():
    models = registry()

    async def get():
        return compiled(AgentSpec("demo"), models)

    first = asyncio.run(get())
    second = asyncio.run(get())
    assert first is not second
    gc.collect()


async def test_a_lead_hands_its_children_what_it_was_told_and_counts_them():
    children = Children(answer=lambda call: done(f"{call.description}: {call.prompt}"))
    call = ("task", {"description": "look up", "prompt": "Where is {x}?", "subagent_type": "scout"})
    outcome = await play([Say(calls=[call, call])], context=run_context(children=children, limits=limits(max_turns=2)))
    assert [one.prompt for one in children.calls] == ["Where is {x}?"] * 2
    assert len({one.tool_call_id for one in children.calls}) == 2
    assert [result.content for result in outcome.results] == ["look up: Where is {x}?"] * 2
    assert outcome.context.counters.children_started == 2
