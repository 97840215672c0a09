"""Lines through a thread's history: pure rules."""

from __future__ import annotations

from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from runs import history
from runs.history import Cut, checkpoint_id, line_to, on_line, seq_of

numbers = st.integers(1, 2**48 - 1)


@given(st.uuids(), numbers)
def test_a_checkpoints_id_means_its_number_on_its_own_thread_only(thread_id: UUID, seq: int):
    made = checkpoint_id(thread_id, seq)
    assert seq_of(thread_id, made) == seq
    assert seq_of(uuid4(), made) is None


@given(st.uuids(), numbers, numbers)
def test_ids_are_in_the_order_of_the_numbers(thread_id: UUID, one: int, other: int):
    ids = [str(checkpoint_id(thread_id, seq)) for seq in (one, other)]
    assert (ids[0] < ids[1]) == (one < other)


@given(st.uuids(), st.uuids())
def test_no_other_uuid_is_a_checkpoint(thread_id: UUID, other: UUID):
    found = seq_of(thread_id, other)
    assert found is None or checkpoint_id(thread_id, found) == other


# A thread as a list of acts: append a message, or go back to one of the numbers so far (0: the empty state).
acts = st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=30)


def told(acts: list[int | None]) -> tuple[list[Cut], dict[int, list[int]]]:
    """The cuts, and what an honest copy of the list at each number says is in the state there."""
    cuts: list[Cut] = []
    states: dict[int, list[int]] = {0: []}
    state: list[int] = []
    for seq, act in enumerate(acts, 1):
        if act is None:
            state = [*state, seq]
        else:
            to = act % seq
            cuts.append(Cut(seq, to))
            state = states[to]
        states[seq] = state
    return cuts, states


@given(acts)
def test_the_line_to_a_number_is_what_copying_the_state_would_give(acts: list[int | None]):
    cuts, states = told(acts)
    messages = [seq for seq, act in enumerate(acts, 1) if act is None]
    for seq, state in states.items():
        assert [m for m in messages if on_line(m, line_to(seq, cuts))] == state


@given(acts, st.integers(0, 30), st.integers(0, 30))
def test_two_lines_are_the_same_up_to_their_common_end_and_nothing_is_shared_behind_it(
    acts: list[int | None], one: int, other: int
):
    cuts, _states = told(acts)
    messages = [seq for seq, act in enumerate(acts, 1) if act is None]
    lines = [line_to(min(seq, len(acts)), cuts) for seq in (one, other)]
    first, second = ({m for m in messages if on_line(m, line)} for line in lines)
    end = history.common_end(*lines)
    assert first & second == {m for m in first if m <= end} == {m for m in second if m <= end}


def test_what_a_rollback_left_is_forgotten_and_what_a_fork_left_is_not():
    cuts = [Cut(4, 2), Cut(7, 4, forget=True)]
    assert history.forgotten(range(1, 9), cuts) == {5, 6}
    assert line_to(8, cuts) == ((1, 2), (8, 8))


def test_a_checkpoint_goes_on_from_the_one_before_it_on_its_line():
    cuts = [Cut(4, 2)]
    assert [history.parent_of(seq, (1, 2, 3, 5), cuts) for seq in (1, 2, 3, 5)] == [0, 1, 2, 2]


def test_a_later_value_goes_before_an_earlier_one_on_the_line_only():
    updates = [(1, {"a": 1, "b": 1}), (3, {"a": 2}), (5, {"a": 3})]
    assert history.values_on(((1, 1), (5, 5)), updates) == {"a": 3, "b": 1}
