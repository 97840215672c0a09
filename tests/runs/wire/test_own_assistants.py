"""Assistants through the real SDK: those of the system, and those a client makes, with their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, PermissionDeniedError

from runs.models import Run
from tests.runs.wire.callers import asks, in_database, said, unknown_id
from tests.runs.wire.test_access import in_shape
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller

pytestmark = pytest.mark.usefixtures("transactional_db", "model")
LEAD = "lead_agent"
# The name space in which the reference server makes ids of graph names.
NAMES = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
LEAD_ID = str(uuid5(NAMES, LEAD))


async def own(caller: Caller, **fields: Any) -> dict[str, Any]:
    wanted = {"graph_id": LEAD, "name": "mine", "metadata": {"mark": uuid4().hex}, **fields}
    return dict(await caller.sdk.assistants.create(**wanted))


async def ran(thread_id: str) -> Run:
    run: Run = await in_database(lambda: Run.objects.filter(thread_id=thread_id).latest("created_at"))
    return run


async def test_the_system_has_an_assistant_for_each_agent_that_can_run(anna: Caller):
    found = {one["graph_id"]: one for one in await anna.sdk.assistants.search(limit=100)}
    assert {LEAD, "general-purpose"} <= set(found)
    assert found[LEAD]["assistant_id"] == LEAD_ID
    assert found[LEAD]["metadata"] == {"created_by": "system", "kind": "lead"}
    assert found["general-purpose"]["metadata"]["kind"] == "subagent"
    assert found["general-purpose"]["description"]
    for one in found.values():
        assert await anna.sdk.assistants.get(one["assistant_id"]) == one
    assert await anna.sdk.assistants.count(graph_id=LEAD) == 1
    in_shape(await anna.http.get(f"/assistants/{LEAD}"), 422, "invalid")


async def test_an_assistant_of_the_system_cannot_be_changed(anna: Caller):
    with pytest.raises(PermissionDeniedError, match="make one of your own"):
        await anna.sdk.assistants.update(LEAD_ID, name="x")
    with pytest.raises(PermissionDeniedError):
        await anna.sdk.assistants.delete(LEAD_ID)
    with pytest.raises(PermissionDeniedError):
        await anna.sdk.assistants.set_latest(LEAD_ID, 1)
    with pytest.raises(ConflictError):
        await anna.sdk.assistants.create(LEAD, assistant_id=LEAD_ID)
    assert (await anna.sdk.assistants.create(LEAD, assistant_id=LEAD_ID, if_exists="do_nothing"))["graph_id"] == LEAD


async def test_an_assistant_is_made_read_changed_and_removed(anna: Caller):
    made = await own(anna, config={"configurable": {"max_total_subagents": 2}, "tags": ["x"]}, description="d")
    assert (made["version"], made["name"], made["description"]) == (1, "mine", "d")
    assert made["context"] == {"max_total_subagents": 2}
    assert await anna.sdk.assistants.get(made["assistant_id"]) == made
    changed = await anna.sdk.assistants.update(made["assistant_id"], metadata={"k": 2}, name="renamed")
    assert (changed["version"], changed["name"]) == (2, "renamed")
    assert changed["metadata"] == {**made["metadata"], "k": 2}
    assert (changed["config"], changed["created_at"]) == (made["config"], made["created_at"])
    await anna.sdk.assistants.delete(made["assistant_id"])
    for gone in (anna.sdk.assistants.get, anna.sdk.assistants.delete, anna.sdk.assistants.get_versions):
        with pytest.raises(NotFoundError):
            await gone(made["assistant_id"])


async def test_every_version_is_kept_and_any_can_be_put_in_force(anna: Caller):
    made = await own(anna, context={"max_total_subagents": 1})
    await anna.sdk.assistants.update(made["assistant_id"], context={"max_total_subagents": 2})
    back = await anna.sdk.assistants.set_latest(made["assistant_id"], 1)
    assert (back["version"], back["context"]) == (1, {"max_total_subagents": 1})
    assert (await anna.sdk.assistants.update(made["assistant_id"], name="third"))["version"] == 3
    versions = await anna.sdk.assistants.get_versions(made["assistant_id"])
    assert [one["version"] for one in versions] == [3, 2, 1]
    assert [one["context"]["max_total_subagents"] for one in versions] == [1, 2, 1]
    assert [v["version"] for v in await anna.sdk.assistants.get_versions(made["assistant_id"], limit=1, offset=1)] == [
        2
    ]
    with pytest.raises(NotFoundError):
        await anna.sdk.assistants.set_latest(made["assistant_id"], 9)


async def test_an_id_that_is_taken_is_a_conflict_unless_it_may_be_used_again(anna: Caller, bert: Caller):
    made = await own(anna)
    with pytest.raises(ConflictError):
        await own(anna, assistant_id=made["assistant_id"])
    assert await own(anna, assistant_id=made["assistant_id"], if_exists="do_nothing", name="other") == made
    with pytest.raises(ConflictError):
        await own(bert, assistant_id=made["assistant_id"], if_exists="do_nothing")


async def test_assistants_are_found_by_metadata_graph_and_a_part_of_the_name(anna: Caller, bert: Caller):
    mark = {"mark": uuid4().hex}
    first, second = await own(anna, metadata=mark, name="Alpha"), await own(anna, metadata=mark, name="beta")
    await own(bert, metadata=mark, name="alpha")

    async def found(**wanted: Any) -> list[str]:
        return [one["name"] for one in await anna.sdk.assistants.search(metadata=mark, **wanted)]

    assert await found(sort_by="name", sort_order="desc") == ["beta", "Alpha"]
    assert await found(name="ALP") == ["Alpha"]
    assert await found(graph_id="general-purpose") == []
    assert await anna.sdk.assistants.count(metadata=mark) == 2
    answer = await anna.post(
        "/assistants/search", {"metadata": mark, "limit": 1, "select": ["name"], "sort_order": "asc"}
    )
    assert answer.json() == [{"name": "Alpha"}]
    assert (answer.headers["x-pagination-total"], answer.headers["x-pagination-next"]) == ("2", "1")
    assert {first["assistant_id"], second["assistant_id"]}.isdisjoint(
        one["assistant_id"] for one in await bert.sdk.assistants.search(limit=1000)
    )


async def test_somebody_elses_assistant_does_not_exist(anna: Caller, bert: Caller):
    made = await own(anna)
    thread_id = await bert.thread()
    for assistant_id in (made["assistant_id"], unknown_id()):
        for work in (
            bert.sdk.assistants.get(assistant_id),
            bert.sdk.assistants.update(assistant_id, name="x"),
            bert.sdk.assistants.delete(assistant_id),
            bert.sdk.assistants.get_versions(assistant_id),
            bert.sdk.assistants.set_latest(assistant_id, 1),
            bert.sdk.assistants.get_graph(assistant_id),
            bert.sdk.assistants.get_schemas(assistant_id),
            bert.sdk.assistants.get_subgraphs(assistant_id),
            bert.sdk.runs.create(thread_id, assistant_id, input=said("x")),
        ):
            with pytest.raises(NotFoundError):
                await work
    assert await anna.sdk.assistants.get(made["assistant_id"]) == made


async def test_how_an_agent_is_built_can_be_drawn(anna: Caller):
    made = await own(anna)
    for assistant_id in (LEAD_ID, made["assistant_id"]):
        graph = await anna.sdk.assistants.get_graph(assistant_id, xray=True)
        nodes = {node["id"] for node in graph["nodes"]}
        assert {edge[end] for edge in graph["edges"] for end in ("source", "target")} == nodes
        schemas = await anna.sdk.assistants.get_schemas(assistant_id)
        assert schemas["graph_id"] == LEAD
        assert "messages" in schemas["input_schema"]["properties"]
        assert await anna.sdk.assistants.get_subgraphs(assistant_id, recurse=True) == {}
        assert await anna.sdk.assistants.get_subgraphs(assistant_id, namespace="tools") == {}


@pytest.mark.usefixtures("worker")
async def test_a_run_of_an_assistant_has_its_choices_unless_the_request_makes_others(anna: Caller):
    made = await own(anna, context={"subagent_enabled": False, "max_total_subagents": 2})
    thread_id = await anna.thread()
    run = await anna.sdk.runs.create(thread_id, made["assistant_id"], input=said(scripts.instant()[1]))
    assert run["assistant_id"] == made["assistant_id"]
    await anna.sdk.runs.join(thread_id, run["run_id"])
    (listed,) = await anna.sdk.runs.list(thread_id)
    assert (listed["assistant_id"], listed["metadata"]["delegation_off"]) == (made["assistant_id"], "request")
    assert (await ran(thread_id)).definition["limits"]["max_total_subagents"] == 2
    other = await anna.thread()
    await anna.sdk.runs.wait(
        other, made["assistant_id"], input=said(scripts.instant()[1]), context={"max_total_subagents": 3}
    )
    assert (await ran(other)).definition["limits"]["max_total_subagents"] == 3


@pytest.mark.usefixtures("worker")
async def test_a_subagent_runs_as_an_assistant_by_itself_and_delegates_to_nobody(anna: Caller):
    for assistant in ("general-purpose", str(uuid5(NAMES, "general-purpose"))):
        thread_id = await anna.thread()
        values = await anna.sdk.runs.wait(thread_id, assistant, input=said(scripts.says("Done.")[1]))
        assert values["messages"][-1]["content"] == "Done."
        run = await ran(thread_id)
        assert (run.agent, run.depth, run.definition["agent"]) == ("general-purpose", 0, "general-purpose")
        assert run.definition["limits"]["max_turns"] == 150
        assert "task" not in run.definition["tools"]
        again = await anna.sdk.runs.wait(thread_id, assistant, input=said(scripts.says("More.")[1]))
        assert [m["content"] for m in again["messages"] if m["type"] == "ai"] == ["Done.", "More."]


@pytest.mark.usefixtures("worker")
async def test_an_assistant_can_be_removed_with_its_threads(anna: Caller):
    made = await own(anna)
    thread_id, other = await anna.thread(), await anna.thread()
    await anna.sdk.runs.wait(thread_id, made["assistant_id"], input=said(scripts.instant()[1]))
    await anna.sdk.assistants.delete(made["assistant_id"], delete_threads=True)
    with pytest.raises(NotFoundError):
        await anna.sdk.threads.get(thread_id)
    assert (await anna.sdk.threads.get(other))["thread_id"] == other


@pytest.mark.parametrize(
    ("status", "field", "body"),
    [
        (422, "graph_id", {"graph_id": None}),
        (422, "graph_id", {"graph_id": 5}),
        (404, None, {"graph_id": "nope"}),
        (422, "assistant_id", {"assistant_id": "x"}),
        (422, "name", {"name": 5}),
        (422, "name", {"name": "x" * 201}),
        (422, "description", {"description": []}),
        (422, "config", {"config": "x"}),
        (422, "context", {"context": []}),
        (422, "metadata", {"metadata": "x"}),
        (422, "config", {"config": {"big": "x" * 70_000}}),
        (422, "context.max_total_subagents", {"context": {"max_total_subagents": True}}),
        (422, "context.agent_name", {"context": {"agent_name": "nobody"}}),
        (422, "if_exists", {"if_exists": "burn"}),
        (400, None, {"context": {"a": 1}, "config": {"configurable": {"b": 1}}}),
    ],
    ids=str,
)
async def test_an_assistant_is_not_made_of_wrong_fields(
    anna: Caller, status: int, field: str | None, body: dict[str, Any]
):
    before = await anna.sdk.assistants.count()
    answer = await anna.post("/assistants", {"graph_id": LEAD, **body})
    assert (answer.status_code, answer.json()["metadata"].get("field")) == (status, field), answer.text
    assert await anna.sdk.assistants.count() == before


async def test_text_that_no_database_takes_is_harmless_in_an_assistant(anna: Caller):
    raw = '{"graph_id": "lead_agent", "name": "n\\u0000\\ud83d", "metadata": {"\\u0000": "\\ud83d"}, "unknown": 1}'
    answer = await anna.http.post("/assistants", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert "\x00" not in (await anna.sdk.assistants.get(answer.json()["assistant_id"]))["name"]
    assert (
        await anna.post(f"/threads/{await anna.thread()}/runs", asks("x") | {"assistant_id": "a\x00b"})
    ).status_code == 422
