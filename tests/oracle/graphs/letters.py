"""A graph that both servers load unchanged: it answers, waits, fails or asks, as the last message bids it."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(MessagesState):
    draft: str
    sent: list[str]


class Context(TypedDict, total=False):
    tone: str


def bidding(state: State) -> str:
    return str(state["messages"][-1].content) if state["messages"] else ""


async def write(state: State) -> dict[str, Any]:
    said = bidding(state)
    get_stream_writer()({"writing": said})
    if said.startswith("sleep "):
        await asyncio.sleep(float(said.removeprefix("sleep ")))
    if said == "fail":
        raise ValueError("the pen is broken")
    model = GenericFakeChatModel(messages=iter([AIMessage(f"Dear Ada, {said}")]))
    reply = await model.ainvoke(state["messages"])
    return {"messages": [AIMessage(str(reply.content))], "draft": str(reply.content)}


def send(state: State) -> dict[str, Any]:
    if state["messages"][0].content == "ask":
        answer = interrupt({"question": "Send it?", "draft": state["draft"]})
        return {"sent": [f"sent: {answer}"]}
    return {"sent": ["sent"]}


builder = StateGraph(State, context_schema=Context)
builder.add_node("write", write)
builder.add_node("send", send)
builder.add_edge(START, "write")
builder.add_edge("write", "send")
builder.add_edge("send", END)
graph = builder.compile()
