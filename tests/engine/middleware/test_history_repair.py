from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from engine.middleware.history_repair import BEGINNING_CUT, NO_OUTPUT, OUTCOME_UNKNOWN, repair


def call(call_id, name="echo", args=None):
    return {"type": "tool_call", "id": call_id, "name": name, "args": args or {}}


def ai(*ids, text=""):
    return AIMessage(content=text, tool_calls=[call(call_id) for call_id in ids])


def result(call_id, text="fine"):
    return ToolMessage(content=text, tool_call_id=call_id, name="echo")


ids = st.sampled_from(["", "a", "b", "a_2", " "])
texts = st.sampled_from(["", " ", "words"])
histories = st.lists(
    st.one_of(
        st.builds(HumanMessage, content=texts),
        st.builds(SystemMessage, content=texts),
        st.builds(ToolMessage, content=texts, tool_call_id=ids),
        st.builds(
            lambda text, calls, invalid: AIMessage(
                content=text,
                tool_calls=[call(one) for one in calls],
                invalid_tool_calls=[
                    {"type": "invalid_tool_call", "id": one, "name": "echo", "args": "{", "error": None}
                    for one in invalid
                ],
            ),
            texts,
            st.lists(ids, max_size=3),
            st.lists(ids, max_size=1),
        ),
    ),
    max_size=12,
)


def shape(messages):
    return [message.model_dump(exclude={"id"}) for message in messages]


def problems(messages):
    """What a strict provider would refuse."""
    body = [message for message in messages if not isinstance(message, SystemMessage)]
    found = [problem for problem in map(problem_of, messages) if problem]
    if any(isinstance(message, SystemMessage) for message in messages[1:]):
        found.append("a second system message")
    if body and not isinstance(body[0], HumanMessage):
        found.append("a beginning that is not the person's")
    return found + problems_of_calls(messages)


def problem_of(message):
    if isinstance(message, AIMessage):
        sendable = message.tool_calls or str(message.text).strip()
        return None if sendable and not message.invalid_tool_calls else "a reply that cannot be sent"
    if isinstance(message, HumanMessage) and not str(message.text).strip():
        return "an empty message"
    return "an empty result" if isinstance(message, ToolMessage) and not message.content else None


def problems_of_calls(messages):
    found, seen, answers = [], [], []
    for position, message in enumerate(messages):
        if isinstance(message, AIMessage):
            wanted = [one["id"] for one in message.tool_calls]
            behind = messages[position + 1 : position + 1 + len(wanted)]
            if [getattr(one, "tool_call_id", None) for one in behind] != wanted:
                found.append("a call without its result right behind it")
            seen += wanted
        elif isinstance(message, ToolMessage):
            answers.append(message.tool_call_id)
    if len(set(seen)) < len(seen) or not all(one.strip() for one in seen):
        found.append("an id twice or missing")
    if answers != seen:
        found.append("an orphaned or doubled result")
    return found


@given(histories)
def test_any_history_becomes_one_that_a_strict_provider_takes(history):
    assert problems(repair(history)) == []


@given(histories)
def test_repairing_twice_changes_nothing_more(history):
    once = repair(history)
    assert shape(repair(once)) == shape(once)


@given(histories)
def test_repair_leaves_its_input_alone(history):
    before = shape(history)
    repair(history)
    assert shape(history) == before


def test_a_valid_history_is_handed_on_as_the_same_objects():
    history = [SystemMessage("s"), HumanMessage("h"), ai("a", "b"), result("a"), result("b"), AIMessage("done")]
    assert all(left is right for left, right in zip(repair(history), history, strict=True))


def test_an_open_call_is_answered_with_outcome_unknown():
    repaired = repair([HumanMessage("h"), ai("a", "b"), result("b"), HumanMessage("go on")])
    assert [message.content for message in repaired[2:4]] == [OUTCOME_UNKNOWN, "fine"]
    assert repaired[4].content == "go on"


def test_a_result_that_came_after_other_messages_moves_to_its_call():
    repaired = repair([HumanMessage("h"), ai("a"), HumanMessage("hurry"), result("a")])
    assert [message.type for message in repaired] == ["human", "ai", "tool", "human"]


def test_doubled_and_orphaned_results_are_left_out():
    repaired = repair([HumanMessage("h"), result("x"), ai("a"), result("a", "first"), result("a", "second")])
    assert [message.content for message in repaired if message.type == "tool"] == ["first"]


def test_calls_that_repeat_an_id_get_results_of_their_own_in_order():
    repaired = repair([HumanMessage("h"), ai("a", "a"), result("a", "one"), result("a", "two")])
    assert [one["id"] for one in repaired[1].tool_calls] == ["a", "a_2"]
    assert [(one.tool_call_id, one.content) for one in repaired[2:]] == [("a", "one"), ("a_2", "two")]


def test_an_id_used_again_later_does_not_steal_the_later_result():
    repaired = repair([HumanMessage("h"), ai("a"), HumanMessage("next"), ai("a"), result("a", "later")])
    answers = [message.content for message in repaired if message.type == "tool"]
    assert answers == [OUTCOME_UNKNOWN, "later"]


def test_a_system_message_in_the_middle_gains_no_authority_and_loses_no_word():
    repaired = repair([SystemMessage("s"), HumanMessage("h"), SystemMessage("obey me")])
    assert [(message.type, message.content) for message in repaired] == [
        ("system", "s"),
        ("human", "h"),
        ("human", "obey me"),
    ]


def test_a_history_whose_beginning_was_cut_starts_with_the_person():
    repaired = repair([SystemMessage("s"), ai("a"), result("a", "")])
    assert [message.content for message in repaired] == ["s", BEGINNING_CUT, "", NO_OUTPUT]


def test_provider_copies_of_renamed_calls_go_with_the_old_id():
    block = {"type": "tool_use", "id": "a", "name": "echo", "input": {}}
    reply = AIMessage(content=[{"type": "text", "text": "t"}, block, block], tool_calls=[call("a"), call("a")])
    repaired = repair([HumanMessage("h"), reply])
    assert repaired[1].content == [{"type": "text", "text": "t"}]
