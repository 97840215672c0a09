"""The calls: everything of the SDK that a program does with a graph, from assistants to the store."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

from tests.oracle.tape import ANSWER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.oracle.tape import Tape

GRAPH = "letters"
UNKNOWN = str(uuid.UUID(int=7))
MODES = ("values", "updates", "messages-tuple", "messages", "custom", "tasks", "checkpoints", "debug")


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def play(sdk: Any, tape: Tape) -> None:
    """All parts, one after the other, each on threads of its own."""
    parts: tuple[Callable[[Any, Tape], Awaitable[None]], ...] = (
        assistants, threads, runs, streams, faults, questions, stops_of_its_own, several_at_once, cancelling,
        states, alone, store,
    )  # fmt: skip
    for part in parts:
        await part(sdk, tape)


async def assistants(sdk: Any, tape: Tape) -> None:
    (found,) = await tape.note("assistants.search", sdk.assistants.search(graph_id=GRAPH)) or [None]
    await tape.note("assistants.get", sdk.assistants.get(found["assistant_id"]))
    await tape.note("assistants.get.by_name", sdk.assistants.get(GRAPH))
    await tape.note("assistants.get.unknown", sdk.assistants.get(UNKNOWN))
    await tape.note("assistants.graph", sdk.assistants.get_graph(found["assistant_id"]))
    await tape.note("assistants.schemas", sdk.assistants.get_schemas(found["assistant_id"]))
    mine = await tape.note(
        "assistants.create",
        sdk.assistants.create(GRAPH, name="mine", context={"tone": "dry"}, metadata={"team": "owls"}),
    )
    await tape.note("assistants.create.unknown_graph", sdk.assistants.create("nobody"))
    await tape.note("assistants.update", sdk.assistants.update(mine["assistant_id"], name="ours"))
    await tape.note("assistants.versions", sdk.assistants.get_versions(mine["assistant_id"]))
    await tape.note("assistants.set_latest", sdk.assistants.set_latest(mine["assistant_id"], 1))
    await tape.note("assistants.search.metadata", sdk.assistants.search(metadata={"team": "owls"}))
    await tape.note("assistants.count", sdk.assistants.count(metadata={"team": "owls"}))
    await tape.note("assistants.delete", sdk.assistants.delete(mine["assistant_id"]))
    await tape.note("assistants.delete.again", sdk.assistants.delete(mine["assistant_id"]))


async def threads(sdk: Any, tape: Tape) -> None:
    thread = await tape.note("threads.create", sdk.threads.create(metadata={"topic": "owls"}))
    thread_id = thread["thread_id"]
    await tape.note("threads.get", sdk.threads.get(thread_id))
    await tape.note("threads.get.unknown", sdk.threads.get(UNKNOWN))
    await tape.note("threads.get.no_uuid", sdk.threads.get("not-a-uuid"))
    await tape.note("threads.create.again", sdk.threads.create(thread_id=thread_id))
    await tape.note("threads.create.again.ok", sdk.threads.create(thread_id=thread_id, if_exists="do_nothing"))
    await tape.note("threads.update", sdk.threads.update(thread_id, metadata={"more": 1}))
    await tape.note("threads.search", sdk.threads.search(metadata={"topic": "owls"}))
    await tape.note("threads.search.nothing", sdk.threads.search(metadata={"topic": "mice"}))
    await tape.note("threads.count", sdk.threads.count(metadata={"topic": "owls"}))
    await tape.note("threads.state.empty", sdk.threads.get_state(thread_id))
    await tape.note("threads.history.empty", sdk.threads.get_history(thread_id))
    await tape.note("threads.delete", sdk.threads.delete(thread_id))
    await tape.note("threads.delete.again", sdk.threads.delete(thread_id))


async def runs(sdk: Any, tape: Tape) -> None:
    thread_id = (await sdk.threads.create())["thread_id"]
    run = await tape.note("runs.create", sdk.runs.create(thread_id, GRAPH, input=said("hello"), metadata={"m": 1}))
    await tape.note("runs.join", sdk.runs.join(thread_id, run["run_id"]))
    await tape.note("runs.get", sdk.runs.get(thread_id, run["run_id"]))
    await tape.note("runs.list", sdk.runs.list(thread_id))
    await tape.note("runs.wait", sdk.runs.wait(thread_id, GRAPH, input=said("again")))
    await tape.note("runs.thread", sdk.threads.get(thread_id))
    await tape.note("runs.state", sdk.threads.get_state(thread_id))
    await tape.note("runs.get.unknown", sdk.runs.get(thread_id, UNKNOWN))
    await tape.note("runs.create.unknown_assistant", sdk.runs.create(thread_id, UNKNOWN, input=said("x")))
    await tape.note("runs.create.unknown_graph", sdk.runs.create(thread_id, "nobody", input=said("x")))
    await tape.note("runs.create.unknown_thread", sdk.runs.create(UNKNOWN, GRAPH, input=said("x")))
    made = sdk.runs.wait(str(uuid.uuid4()), GRAPH, input=said("made"), if_not_exists="create")
    await tape.note("runs.wait.if_not_exists", made)
    await tape.note("runs.delete", sdk.runs.delete(thread_id, run["run_id"]))
    await tape.note("runs.delete.again", sdk.runs.delete(thread_id, run["run_id"]))


async def streams(sdk: Any, tape: Tape) -> None:
    for mode in MODES:
        thread_id = (await sdk.threads.create())["thread_id"]
        parts = sdk.runs.stream(thread_id, GRAPH, input=said("hello"), stream_mode=mode)
        await tape.note_stream(f"runs.stream.{mode}", parts)
    thread_id = (await sdk.threads.create())["thread_id"]
    both = sdk.runs.stream(thread_id, GRAPH, input=said("hello"), stream_mode=["updates", "values"])
    await tape.note_stream("runs.stream.two_modes", both)
    (run,) = await sdk.runs.list(thread_id)
    await tape.note_stream("runs.join_stream.ended", sdk.runs.join_stream(thread_id, run["run_id"]))


async def faults(sdk: Any, tape: Tape) -> None:
    thread_id = (await sdk.threads.create())["thread_id"]
    await tape.note("faults.wait", sdk.runs.wait(thread_id, GRAPH, input=said("fail"), raise_error=False))
    (run,) = await tape.note("faults.runs", sdk.runs.list(thread_id))
    await tape.note("faults.join", sdk.runs.join(thread_id, run["run_id"]))
    await tape.note("faults.thread", sdk.threads.get(thread_id))
    thread_id = (await sdk.threads.create())["thread_id"]
    parts = sdk.runs.stream(thread_id, GRAPH, input=said("fail"), stream_mode="updates")
    await tape.note_stream("faults.stream", parts)


async def questions(sdk: Any, tape: Tape) -> None:
    thread_id = (await sdk.threads.create())["thread_id"]
    await tape.note("questions.wait", sdk.runs.wait(thread_id, GRAPH, input=said("ask")))
    await tape.note("questions.runs", sdk.runs.list(thread_id))
    await tape.note("questions.thread", sdk.threads.get(thread_id))
    await tape.note("questions.state", sdk.threads.get_state(thread_id))
    await tape.note("questions.resume", sdk.runs.wait(thread_id, GRAPH, command={"resume": "yes"}))
    await tape.note("questions.thread.answered", sdk.threads.get(thread_id))
    thread_id = (await sdk.threads.create())["thread_id"]
    parts = sdk.runs.stream(thread_id, GRAPH, input=said("ask"), stream_mode="updates")
    await tape.note_stream("questions.stream", parts)


async def stops_of_its_own(sdk: Any, tape: Tape) -> None:
    for where in ("interrupt_before", "interrupt_after"):
        thread_id = (await sdk.threads.create())["thread_id"]
        node = {"interrupt_before": "send", "interrupt_after": "write"}[where]
        await tape.note(f"{where}.wait", sdk.runs.wait(thread_id, GRAPH, input=said("hello"), **{where: [node]}))
        await tape.note(f"{where}.state", sdk.threads.get_state(thread_id))
        await tape.note(f"{where}.thread", sdk.threads.get(thread_id))
        await tape.note(f"{where}.goes_on", sdk.runs.wait(thread_id, GRAPH, input=None))


async def several_at_once(sdk: Any, tape: Tape) -> None:
    for strategy in ("reject", "enqueue", "interrupt", "rollback"):
        thread_id = (await sdk.threads.create())["thread_id"]
        first = await sdk.runs.create(thread_id, GRAPH, input=said("sleep 1.5"))
        await until_running(sdk, thread_id, first["run_id"])
        second = await tape.note(
            f"multitask.{strategy}",
            sdk.runs.create(thread_id, GRAPH, input=said("second"), multitask_strategy=strategy),
        )
        last = (second or first)["run_id"]
        await tape.note(f"multitask.{strategy}.join", sdk.runs.join(thread_id, last))
        await tape.note(f"multitask.{strategy}.runs", statuses(sdk, thread_id))
        await tape.note(f"multitask.{strategy}.words", words(sdk, thread_id))


async def cancelling(sdk: Any, tape: Tape) -> None:
    for action in ("interrupt", "rollback"):
        thread_id = (await sdk.threads.create())["thread_id"]
        run = await sdk.runs.create(thread_id, GRAPH, input=said("sleep 30"))
        await until_running(sdk, thread_id, run["run_id"])
        await tape.note(f"cancel.{action}", sdk.runs.cancel(thread_id, run["run_id"], wait=True, action=action))
        await tape.note(f"cancel.{action}.run", sdk.runs.get(thread_id, run["run_id"]))
        await tape.note(f"cancel.{action}.thread", sdk.threads.get(thread_id))
    thread_id = (await sdk.threads.create())["thread_id"]
    run = await sdk.runs.create(thread_id, GRAPH, input=said("hello"))
    await sdk.runs.join(thread_id, run["run_id"])
    await tape.note("cancel.ended", sdk.runs.cancel(thread_id, run["run_id"]))
    await tape.note("cancel.unknown", sdk.runs.cancel(thread_id, UNKNOWN))


async def states(sdk: Any, tape: Tape) -> None:
    thread_id = (await sdk.threads.create())["thread_id"]
    await sdk.runs.wait(thread_id, GRAPH, input=said("hello"))
    history = await tape.note("states.history", sdk.threads.get_history(thread_id))
    await tape.note("states.history.limit", sdk.threads.get_history(thread_id, limit=2))
    checkpoint = next(one["checkpoint"] for one in history if one["next"] == ["send"])
    await tape.note("states.at", sdk.threads.get_state(thread_id, checkpoint=checkpoint))
    await tape.note("states.fork", sdk.runs.wait(thread_id, GRAPH, input=None, checkpoint=checkpoint))
    await tape.note("states.update", sdk.threads.update_state(thread_id, {"draft": "new"}, as_node="write"))
    await tape.note("states.updated", sdk.threads.get_state(thread_id))
    await tape.note("states.update.no_node", sdk.threads.update_state(thread_id, {"draft": "x"}, as_node="nobody"))
    copy = await tape.note("threads.copy", sdk.threads.copy(thread_id))
    if copy:
        await tape.note("threads.copy.words", words(sdk, copy["thread_id"]))


async def alone(sdk: Any, tape: Tape) -> None:
    await tape.note("stateless.wait", sdk.runs.wait(None, GRAPH, input=said("alone")))
    parts = sdk.runs.stream(None, GRAPH, input=said("alone"), stream_mode="updates")
    await tape.note_stream("stateless.stream", parts)
    payloads = [{"assistant_id": GRAPH, "input": said(text)} for text in ("one", "two")]
    await tape.note("stateless.batch", sdk.runs.create_batch(payloads))


async def store(sdk: Any, tape: Tape) -> None:
    space = ["oracle", "birds"]
    await tape.note("store.put", sdk.store.put_item(space, "owl", {"eyes": 2}))
    await tape.note("store.get", sdk.store.get_item(space, "owl"))
    await tape.note("store.get.missing", sdk.store.get_item(space, "emu"))
    await tape.note("store.search", sdk.store.search_items(["oracle"], filter={"eyes": 2}))
    await tape.note("store.namespaces", sdk.store.list_namespaces(prefix=["oracle"]))
    await tape.note("store.delete", sdk.store.delete_item(space, "owl"))


async def until_running(sdk: Any, thread_id: str, run_id: str) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        while (await sdk.runs.get(thread_id, run_id))["status"] == "pending":
            await asyncio.sleep(0.05)


async def statuses(sdk: Any, thread_id: str) -> list[str]:
    return sorted([run["status"] for run in await sdk.runs.list(thread_id)])


async def words(sdk: Any, thread_id: str) -> list[str]:
    values = (await sdk.threads.get_state(thread_id))["values"]
    return [message["content"] for message in values["messages"]]
