"""Reasoning of servers that speak OpenAI's protocol: kept beside the answer, and sent back where it is wanted.

OpenAI itself never sends it in chat completions, so langchain-openai passes it over; DeepSeek, Qwen, vLLM and others
send `reasoning_content` or `reasoning`, and some of them refuse a conversation whose replies with tool calls come
back without it. Sources: api-docs.deepseek.com "Thinking Mode"; docs.vllm.ai "Reasoning Outputs".
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_openai.chat_models.base import BaseChatOpenAI

REASONING: Final = "reasoning_content"
_SPELLINGS: Final = (REASONING, "reasoning")


@functools.cache
def with_reasoning(target: type[BaseChatOpenAI]) -> type[BaseChatOpenAI]:
    """The same class, whose replies keep their reasoning and whose requests carry it."""

    class Reasoning(target):  # type: ignore[valid-type, misc]
        def _convert_chunk_to_generation_chunk(self, chunk: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            converted = super()._convert_chunk_to_generation_chunk(chunk, *args, **kwargs)
            said = _reasoning_of(chunk)
            if converted is not None and said:
                converted.message.additional_kwargs.setdefault(REASONING, said)
            return converted

        def _get_request_payload(self, input_: Any, **kwargs: Any) -> dict[str, Any]:
            payload: dict[str, Any] = super()._get_request_payload(input_, **kwargs)
            messages = self._convert_input(input_).to_messages()
            if len(payload.get("messages", ())) == len(messages):
                for message, wire in zip(messages, payload["messages"], strict=True):
                    wire.update(reasoning_to_send(message))
            return payload

    Reasoning.__name__, Reasoning.__qualname__ = target.__name__, target.__qualname__
    return Reasoning


def reasoning_to_send(message: object) -> dict[str, str]:
    """The field that a message of a request gets for the reasoning behind its tool calls; else nothing.

    Reasoning behind a mere answer is left out: nobody asks for it, and it would cost tokens for ever.
    """
    if not isinstance(message, AIMessage) or not message.tool_calls:
        return {}
    said = message.additional_kwargs.get(REASONING)
    return {REASONING: said} if isinstance(said, str) and said else {}


def _reasoning_of(chunk: Mapping[str, Any]) -> str:
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        return ""
    return next((said for name in _SPELLINGS if isinstance(said := delta.get(name), str) and said), "")
