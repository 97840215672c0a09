"""Messages merged into a state by their ids: the same as LangGraph's own reducer gives."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.merging import REMOVE, REMOVE_ALL, NoSuchMessage, Said, merge

RUN, BY_HAND = UUID(int=1), UUID(int=0)
messages = st.builds(
    lambda key, text: {"type": "human", "id": key, "content": text}, st.sampled_from("abcdef"), st.text(max_size=3)
)
removals = st.builds(lambda key: {"type": REMOVE, "id": key}, st.sampled_from([*"abcdef", REMOVE_ALL]))


def state(*texts: str) -> list[Said]:
    return [Said(seq, RUN, {"type": "human", "id": text, "content": text}) for seq, text in enumerate(texts, 1)]


def applied(now: list[Said], incoming: list[dict[str, Any]]) -> list[dict[str, Any]]:
    merged = merge(now, incoming, BY_HAND)
    return [one.message for one in now if one.seq <= merged.keep] + [one.message for one in merged.rest]


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.one_of(messages, removals), max_size=6))
def test_merging_gives_what_langgraphs_reducer_gives(there: list[str], incoming: list[dict[str, Any]]):
    from langchain_core.messages import HumanMessage, RemoveMessage
    from langgraph.graph.message import add_messages

    def of(one: dict[str, Any]) -> Any:
        return RemoveMessage(id=one["id"]) if one["type"] == REMOVE else HumanMessage(one["content"], id=one["id"])

    now = state(*there)
    try:
        # One after the other, as their reducer looks at a whole list before it removes anything.
        wanted: list[Any] = [of(one.message) for one in now]
        for one in incoming:
            wanted = list(add_messages(wanted, [of(one)]))  # type: ignore[arg-type]
    except ValueError:
        with pytest.raises(NoSuchMessage):
            merge(now, incoming, BY_HAND)
        return
    assert [(m["id"], m["content"]) for m in applied(now, incoming)] == [(m.id, m.content) for m in wanted]


def test_what_is_before_the_first_change_is_not_written_again():
    merged = merge(state("a", "b", "c"), [{"type": "human", "id": "b", "content": "B"}], BY_HAND)
    assert (merged.keep, [one.message["content"] for one in merged.rest]) == (1, ["B", "c"])
    assert [one.run_id for one in merged.rest] == [RUN, RUN]


def test_what_only_comes_last_changes_nothing_before_it():
    merged = merge(state("a"), [{"type": "ai", "id": "z", "content": "z"}], BY_HAND)
    assert (merged.keep, [one.run_id for one in merged.rest]) == (1, [BY_HAND])


def test_a_summary_behind_a_change_is_left_out_because_it_counts_messages():
    summary = Said(3, RUN, {"type": "system", "name": "summary", "id": "s", "summary": {"covered": 2}})
    merged = merge([*state("a", "b"), summary], [{"type": REMOVE, "id": "a"}], BY_HAND)
    assert (merged.keep, [one.message["id"] for one in merged.rest]) == (0, ["b"])
    assert merge([*state("a", "b"), summary], [{"type": "human", "id": "c"}], BY_HAND).keep == 3
