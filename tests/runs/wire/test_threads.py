"""Threads as wholes through the real SDK: changed, found, copied, kept for a while, removed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.utils import timezone
from langgraph_sdk.errors import ConflictError, NotFoundError

from runs import keeping
from runs.models import Event, Message, Run, Thread
from tests.runs.wire.callers import contents, in_database, said, unknown_id
from tests.scripted_model import scripts

if TYPE_CHECKING:
    from tests.runs.wire.callers import Caller
    from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("transactional_db")
LEAD = "lead_agent"


def words(*texts: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


async def holding(caller: Caller, *texts: str, **values: Any) -> str:
    """A thread whose state holds these words, without a run."""
    thread_id = await caller.thread()
    await caller.sdk.threads.update_state(thread_id, {**words(*texts), **values})
    return thread_id


async def test_metadata_is_merged_and_a_short_answer_can_be_asked_for(anna: Caller):
    thread = await anna.sdk.threads.create(metadata={"a": 1, "b": 1})
    changed = await anna.sdk.threads.update(thread["thread_id"], metadata={"b": 2})
    assert changed["metadata"] == {"a": 1, "b": 2}
    assert changed["updated_at"] >= thread["updated_at"]
    assert await anna.sdk.threads.update(thread["thread_id"], metadata={"c": 3}, return_minimal=True) is None
    assert (await anna.sdk.threads.get(thread["thread_id"]))["metadata"] == {"a": 1, "b": 2, "c": 3}


async def test_metadata_does_not_outgrow_its_bound_piece_by_piece(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.threads.update(thread_id, metadata={"a": "x" * 40_000})
    answer = await anna.http.patch(f"/threads/{thread_id}", json={"metadata": {"b": "x" * 40_000}})
    assert (answer.status_code, answer.json()["metadata"]["field"]) == (422, "metadata")


async def test_a_deleted_thread_is_gone_with_all_it_held(anna: Caller):
    thread_id = await holding(anna, "one")
    await anna.sdk.threads.delete(thread_id)
    for gone in (anna.sdk.threads.get, anna.sdk.threads.delete, anna.sdk.threads.get_state):
        with pytest.raises(NotFoundError):
            await gone(thread_id)
    assert await in_database(lambda: Message.objects.filter(thread_id=thread_id).exists()) is False


@pytest.mark.usefixtures("worker")
async def test_a_thread_is_deleted_while_it_runs_and_nothing_is_written_to_it_any_more(
    anna: Caller, model: ScriptedModel
):
    thread_id = await anna.thread()
    script, prompt = scripts.gated("deleted")
    run = await anna.sdk.runs.create(thread_id, LEAD, input=said(prompt))
    await model.until(lambda m: bool(m.calls_of(script)), 60)
    await anna.sdk.threads.delete(thread_id)
    with pytest.raises(NotFoundError):
        await anna.sdk.threads.get(thread_id)
    model.open_gate("deleted")
    other = await anna.thread()  # the same worker takes further runs: it has let go of this one
    await anna.sdk.runs.wait(other, LEAD, input=said(scripts.says("ok")[1]))
    left = await in_database(
        lambda: (
            Event.objects.filter(thread_id=thread_id).exists(),
            Message.objects.filter(thread_id=thread_id).exists(),
            Run.objects.filter(pk=run["run_id"]).exists(),
        )
    )
    assert left == (False, False, False)


async def test_threads_are_found_by_metadata_values_ids_and_status(anna: Caller, bert: Caller):
    mark = uuid4().hex
    apps = await anna.sdk.threads.create(metadata={"mark": mark, "topic": {"name": "apps", "n": 3}, "tags": ["a", "b"]})
    await anna.sdk.threads.create(metadata={"mark": mark, "topic": {"name": "cars"}})
    await bert.sdk.threads.create(metadata={"mark": mark})
    await anna.sdk.threads.update_state(apps["thread_id"], {"plan": {"step": 2}})

    async def found(**wanted: Any) -> list[str]:
        threads = await anna.sdk.threads.search(**wanted)
        assert await anna.sdk.threads.count(**{k: v for k, v in wanted.items() if k != "ids"}) >= len(threads)
        return [thread["thread_id"] for thread in threads]

    assert len(await found(metadata={"mark": mark})) == 2
    only = [apps["thread_id"]]
    assert await found(metadata={"mark": mark, "topic": {"name": "apps"}}) == only
    assert await found(metadata={"mark": mark, "tags": ["b"]}) == only
    assert await found(metadata={"mark": mark, "topic": "apps"}) == []
    assert await found(metadata={"mark": mark}, values={"plan": {"step": 2}}) == only
    assert await found(metadata={"mark": mark}, values={"plan": {"step": 3}}) == []
    assert await found(ids=[apps["thread_id"], unknown_id()]) == only
    assert await found(metadata={"mark": mark}, status="busy") == []
    assert await bert.sdk.threads.search(ids=only) == []
    assert await found(metadata={"mark": mark, "n__gt": 1, "%s": "' OR 1=1", "0": 1}) == []


async def test_a_page_says_how_many_there_are_and_where_the_next_begins(anna: Caller):
    made = [await anna.thread() for _ in range(3)]
    answer = await anna.post("/threads/search", {"limit": 2, "sort_by": "created_at", "sort_order": "asc"})
    assert [thread["thread_id"] for thread in answer.json()] == made[:2]
    assert (answer.headers["x-pagination-total"], answer.headers["x-pagination-next"]) == ("3", "2")
    answer = await anna.post("/threads/search", {"limit": 2, "offset": 2, "sort_order": "asc"})
    assert [thread["thread_id"] for thread in answer.json()] == made[2:]
    assert (answer.headers["x-pagination-total"], "x-pagination-next" in answer.headers) == ("3", False)


async def test_only_what_is_selected_or_extracted_is_told(anna: Caller):
    thread_id = await holding(anna, "one", "two", plan=["first"])
    (thread,) = await anna.sdk.threads.search(select=["thread_id", "status"])
    assert thread == {"thread_id": thread_id, "status": "idle"}
    paths = {"last": "values.messages[-1].content", "plan": "values.plan[0]", "none": "values.odd[3].x"}
    (thread,) = await anna.sdk.threads.search(select=["thread_id"], extract=paths)
    assert thread == {"thread_id": thread_id, "extracted": {"last": "two", "plan": "first", "none": None}}
    (thread,) = await anna.sdk.threads.search()
    assert contents(thread["values"]) == ["one", "two"]


async def test_a_copy_is_independent_and_has_the_history(anna: Caller, bert: Caller):
    thread_id = await holding(anna, "one", note="a")
    first = (await anna.sdk.threads.get_state(thread_id))["checkpoint_id"]
    await anna.sdk.threads.update_state(thread_id, words("two"))
    await anna.sdk.threads.update_state(thread_id, words("other"), checkpoint_id=first)
    copy = await anna.sdk.threads.copy(thread_id)
    assert copy["thread_id"] != thread_id

    async def told(of: str) -> list[list[str]]:
        return [contents(state["values"]) for state in await anna.sdk.threads.get_history(of)]

    assert await told(copy["thread_id"]) == await told(thread_id)
    assert contents(copy["values"]) == ["one", "other"]
    assert copy["values"]["note"] == "a"
    before = await told(thread_id)
    await anna.sdk.threads.update_state(copy["thread_id"], words("three"))
    await anna.sdk.threads.update(copy["thread_id"], metadata={"x": 1})
    assert await told(thread_id) == before
    await anna.sdk.threads.delete(thread_id)
    assert contents((await anna.sdk.threads.get(copy["thread_id"]))["values"]) == ["one", "other", "three"]
    for caller, wanted in ((anna, unknown_id()), (bert, copy["thread_id"])):
        with pytest.raises(NotFoundError):
            await caller.sdk.threads.copy(wanted)


@pytest.mark.usefixtures("worker", "model")
async def test_a_copy_goes_on_from_where_the_original_stood(anna: Caller):
    thread_id = await anna.thread()
    await anna.sdk.runs.wait(thread_id, LEAD, input=said(scripts.says("One.")[1]))
    copy = await anna.sdk.threads.copy(thread_id)
    values = await anna.sdk.runs.wait(copy["thread_id"], LEAD, input=said(scripts.says("Two.")[1]))
    assert [text for text in contents(values) if text in ("One.", "Two.")] == ["One.", "Two."]
    assert len((await anna.sdk.threads.get(thread_id))["values"]["messages"]) == 2


async def test_pruning_removes_ones_own_threads_or_what_was_left_of_their_history(anna: Caller, bert: Caller):
    kept, gone, theirs = await holding(anna, "one"), await anna.thread(), await bert.thread()
    root = (await anna.sdk.threads.get_state(kept))["checkpoint_id"]
    await anna.sdk.threads.update_state(kept, words("left"))
    await anna.sdk.threads.update_state(kept, words("taken"), checkpoint_id=root)
    assert len(await anna.sdk.threads.get_history(kept)) == 3
    assert await anna.sdk.threads.prune([kept, theirs], strategy="keep_latest") == {"pruned_count": 1}
    history = await anna.sdk.threads.get_history(kept)
    assert [contents(state["values"]) for state in history] == [["one", "taken"], ["one"]]
    assert await anna.sdk.threads.prune([gone, theirs, unknown_id()]) == {"pruned_count": 1}
    with pytest.raises(NotFoundError):
        await anna.sdk.threads.get(gone)
    assert (await bert.sdk.threads.get(theirs))["thread_id"] == theirs


async def test_a_thread_past_its_time_is_removed_or_cut_by_housekeeping(anna: Caller):
    gone = (await anna.sdk.threads.create(ttl=5))["thread_id"]
    cut = (await anna.sdk.threads.create(ttl={"ttl": 5, "strategy": "keep_latest"}))["thread_id"]
    stays = (await anna.sdk.threads.create(ttl=60 * 24 * 30))["thread_id"]
    read = (await anna.http.get(f"/threads/{gone}", params={"include": "ttl"})).json()
    assert (read["ttl"]["ttl_minutes"], read["ttl"]["strategy"]) == (5, "delete")
    await anna.sdk.threads.update_state(cut, words("one"))
    await anna.sdk.threads.update_state(cut, {"messages": [{"type": "remove", "id": "__remove_all__"}]})

    def housekeep() -> tuple[int, int]:
        later = timezone.now() + timedelta(minutes=6)
        due = keeping.prune_expired(later, True)["threads_past_their_time"]
        return due, keeping.prune_expired(later, False)["threads_past_their_time"]

    due, removed = await in_database(housekeep)
    assert due == removed >= 2
    left = {str(pk) for pk in await in_database(lambda: list(Thread.objects.values_list("pk", flat=True)))}
    assert (gone in left, cut in left, stays in left) == (False, True, True)
    assert await in_database(lambda: Message.objects.filter(thread_id=cut).count()) == 0


async def test_a_thread_can_begin_with_a_state(anna: Caller):
    steps = [
        {"updates": [{"values": words("one"), "as_node": "__start__"}]},
        {"updates": [{"values": {"n": 1}, "as_node": "model"}]},
    ]
    thread = await anna.sdk.threads.create(supersteps=steps, metadata={"a": 1}, graph_id=LEAD)
    assert contents(thread["values"]) == ["one"]
    assert (thread["values"]["n"], thread["metadata"]) == (1, {"a": 1, "graph_id": LEAD})
    bad = [*steps, {"updates": [{"values": {"messages": [{"type": "remove", "id": "nobody"}]}}]}]
    wanted = str(uuid4())
    answer = await anna.post("/threads", {"thread_id": wanted, "supersteps": bad})
    assert answer.status_code == 422
    with pytest.raises(NotFoundError):
        await anna.sdk.threads.get(wanted)
    with pytest.raises(ConflictError):
        await anna.sdk.threads.create(thread_id=thread["thread_id"], supersteps=steps)
