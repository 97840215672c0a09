"""The example's model: any that LangChain knows (EXAMPLE_MODEL=openai:gpt-5-mini), else one that needs no key.

The one without a key says that it is a demo. It really calls the tools, so that everything else is as it would be.
"""

from __future__ import annotations

import os
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

AGENTS = ("researcher", "coder")


def chat_model(role: str) -> BaseChatModel:
    name = os.environ.get("EXAMPLE_MODEL", "")
    return init_chat_model(name) if name else WithoutKey(role=role)


class WithoutKey(BaseChatModel):
    """Starts every background agent, lists them when it is asked how they are doing, and otherwise says what it did."""

    role: str

    @property
    def _llm_type(self) -> str:
        return "example"

    def bind_tools(self, tools: Any, **_options: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        reply = self._reply(messages, [tool["function"]["name"] for tool in options.get("tools") or ()])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _reply(self, messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        asked = max((at for at, one in enumerate(messages) if isinstance(one, HumanMessage)), default=0)
        request = str(messages[asked].text)
        results = [str(one.text) for one in messages[asked:] if isinstance(one, ToolMessage)]
        if results:
            return AIMessage("(demo) " + "\n".join(results))
        if "<task-notification>" in request:
            return AIMessage("(demo) A background agent has finished.")
        if "start_async_task" not in tools:
            return AIMessage(f"(demo) The {self.role} has finished: {request}")
        if "how" in request.lower() or "list" in request.lower():
            return AIMessage("", tool_calls=[{"id": "list", "name": "list_async_tasks", "args": {}}])
        calls = [
            {"id": f"start-{name}", "name": "start_async_task", "args": {"description": request, "subagent_type": name}}
            for name in AGENTS
        ]
        return AIMessage("", tool_calls=calls)
