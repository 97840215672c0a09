"""A tool that cannot do what it was asked tells the model; it never ends the run nor hurts its siblings."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from engine.middleware.reply import Guard, refusal
from engine.text import clean, shorten
from engine.tools.errors import ToolFailed
from engine.tools.names import DELEGATION_TOOLS

logger = logging.getLogger(__name__)

ToolResult: TypeAlias = ToolMessage | Command[Any]
ToolHandler: TypeAlias = Callable[[ToolCallRequest], Awaitable[ToolResult]]
MAX_SENTENCE_CHARACTERS = 2_000
MAX_PROBLEMS = 8


class ToolErrorsMiddleware(Guard):
    """Turn unknown tools, wrong arguments and failures into results. Cancellation passes through."""

    def __init__(self) -> None:
        super().__init__()
        self._schemas: dict[str, type[BaseModel] | None] = {}

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        call = request.tool_call
        if request.tool is None:
            return refusal(call, _unknown(call["name"], request))
        problems = self._problems(request.tool, call["args"])
        if problems:
            return refusal(call, f"This call was not run: {problems}")
        try:
            return await handler(request)
        except GraphBubbleUp:
            raise
        except (ToolFailed, ToolException) as error:
            return refusal(call, shorten(clean(str(error)), MAX_SENTENCE_CHARACTERS) or "The tool failed.")
        except Exception as error:
            logger.exception("tool %s of run %s failed", call["name"], _run_id(request))
            return refusal(call, f"The tool {call['name']} failed unexpectedly ({type(error).__name__}).")

    def _problems(self, tool: BaseTool, arguments: object) -> str:
        """What is wrong with the arguments, "" when nothing is."""
        if tool.name not in self._schemas:
            # Built from the signature at each access, which costs more than the check itself.
            built = tool.tool_call_schema
            self._schemas[tool.name] = None
            if isinstance(built, type) and issubclass(built, BaseModel):
                self._schemas[tool.name] = built
        schema = self._schemas[tool.name]
        if schema is None:
            return ""
        try:
            schema.model_validate(arguments)
        except ValidationError as error:
            found = [_problem(one) for one in error.errors(include_input=False)[:MAX_PROBLEMS]]
            known = ", ".join(schema.model_fields) or "none"
            return f"{'; '.join(found)}. The arguments of {tool.name} are: {known}."
        return ""


def _problem(error: Any) -> str:
    name = ".".join(str(part) for part in error["loc"]) or "arguments"
    if error["type"] == "missing":
        return f"{name} is missing"
    return f"{shorten(clean(name), 80)}: {shorten(clean(str(error['msg'])), 200)}"


def _unknown(name: str, request: ToolCallRequest) -> str:
    context = getattr(request.runtime, "context", None)
    if name in DELEGATION_TOOLS and getattr(context, "is_subagent", False):
        return f"This call was not run: {name} is not available to subagents."
    names = ", ".join(tool.name for tool in request.runtime.tools) or "none"
    return f'This call was not run: there is no tool "{shorten(name, 80)}". Available tools: {names}.'


def _run_id(request: ToolCallRequest) -> str:
    return str(getattr(getattr(request.runtime, "context", None), "run_id", ""))
