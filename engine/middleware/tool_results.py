"""A tool result has an id of its own, text that every store can carry, and a size that a model can read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from langchain_core.messages import ToolMessage

from engine.middleware.reply import Guard
from engine.text import REPLACED, clean_json, count_replaced, middle_cut

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ToolCallRequest

    from engine.middleware.tool_errors import ToolHandler, ToolResult


MAX_RESULT_CHARACTERS = 200_000  # the last line of defence: tools have tighter limits of their own


class ToolResultsMiddleware(Guard):
    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        result = await handler(request)
        if not isinstance(result, ToolMessage):
            return result
        content = clean_json(result.content)
        if isinstance(content, str):
            content = middle_cut(content, MAX_RESULT_CHARACTERS)
        replaced = count_replaced(result.content) + count_replaced(result.artifact)
        extra = {**result.additional_kwargs, REPLACED: replaced} if replaced else result.additional_kwargs
        changes = {
            "additional_kwargs": extra,
            "content": content,
            "id": result.id or str(uuid4()),
            "name": result.name or request.tool_call["name"],
        }
        return result.model_copy(update=changes)
