"""A background agent of the supervisor."""

from __future__ import annotations

from example_model import chat_model
from langgraph.graph import END, START, MessagesState, StateGraph


async def work(state: MessagesState) -> dict[str, list[object]]:
    return {"messages": [await chat_model("researcher").ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node(work).add_edge(START, "work").add_edge("work", END).compile()
