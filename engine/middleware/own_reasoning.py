"""Reasoning goes back to the model that wrote it, and to no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_core.messages import AIMessage

from engine.middleware.names import WRITTEN_BY
from engine.middleware.reply import Guard

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

    from engine.middleware.reply import Handler, Request, Response

_BLOCKS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_FIELDS: Final = frozenset(
    {
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "__gemini_function_call_thought_signatures__",
    }
)


class OwnReasoningMiddleware(Guard):
    """Leave the reasoning of all other models out of the request.

    Some providers refuse a conversation whose reasoning does not come back word for word, others refuse one that
    holds reasoning they did not sign. Stands before the history repair, which sees to what is left of a message.
    """

    def __init__(self, model: str = "") -> None:
        super().__init__()
        self._model = model

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        if not self._model:
            return await handler(request)
        messages = [self._readable(message) for message in request.messages]
        if any(new is not old for new, old in zip(messages, request.messages, strict=True)):
            request = request.override(messages=messages)
        return await handler(request)

    def _readable(self, message: AnyMessage) -> AnyMessage:
        if not isinstance(message, AIMessage) or message.response_metadata.get(WRITTEN_BY) == self._model:
            return message
        return without_reasoning(message)


def without_reasoning(message: AIMessage) -> AIMessage:
    """The reply with its words and calls only; the same object when there is nothing to leave out."""
    content = message.content
    if isinstance(content, list):
        content = [block for block in content if not (isinstance(block, dict) and block.get("type") in _BLOCKS)]
    fields = {name: value for name, value in message.additional_kwargs.items() if name not in _FIELDS}
    if len(content) == len(message.content) and len(fields) == len(message.additional_kwargs):
        return message
    return message.model_copy(update={"content": content, "additional_kwargs": fields})
