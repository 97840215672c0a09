"""Another team's supervisor: a deepagents agent in a process of its own, whose background agents are on a server.

The version is whichever comes first on PYTHONPATH. First line in: {"subagents": [...]}; first line out: {"version"}.
Then one line in for a turn, {"thread", "calls": [{"name", "args"}], "sync"}, and one out for what came of it,
{"tools": [content], "tasks": {id: record}, "notes": [text of what the middleware told the model]}.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from importlib.metadata import version
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

_replies: deque[AIMessage] = deque()


class ScriptedSupervisor(BaseChatModel):
    """Says what the turn bids it, then nothing more."""

    @property
    def _llm_type(self) -> str:
        return "scripted-supervisor"

    def bind_tools(self, *_arguments: Any, **_options: Any) -> Any:
        return self

    def _generate(self, *_arguments: Any, **_options: Any) -> ChatResult:
        reply = _replies.popleft() if _replies else AIMessage("Noted.")
        return ChatResult(generations=[ChatGeneration(message=reply)])


async def turn(agent: Any, asked: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {"name": call["name"], "args": call["args"], "id": f"call-{number}", "type": "tool_call"}
        for number, call in enumerate(asked["calls"])
    ]
    _replies.clear()
    if calls:
        _replies.append(AIMessage("", tool_calls=calls))  # type: ignore[arg-type]
    config = {"configurable": {"thread_id": asked["thread"]}}
    before = len((await agent.aget_state(config)).values.get("messages", []))
    words = {"messages": [HumanMessage("Go on.")]}
    if asked.get("sync"):
        state = await asyncio.to_thread(agent.invoke, words, config)
    else:
        state = await agent.ainvoke(words, config)
    new = state["messages"][before:]
    return {
        "tools": [message.content for message in new if message.type == "tool"],
        "tasks": state.get("async_tasks", {}),
        "notes": [message.text for message in new if message.type == "human"][1:],
    }


async def serve() -> None:
    first = json.loads(await asyncio.to_thread(sys.stdin.readline))
    agent = create_deep_agent(model=ScriptedSupervisor(), subagents=first["subagents"], checkpointer=InMemorySaver())
    print(json.dumps({"version": version("deepagents")}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await turn(agent, json.loads(line)), default=str), flush=True)


if __name__ == "__main__":
    asyncio.run(serve())
