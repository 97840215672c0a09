"""A chat model that needs no key, says that it is a demo, and really drives the tools."""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import TYPE_CHECKING, Any
from zlib import crc32

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from engine.errors import EngineError
from engine.models.demo_plan import Ending, Planned, Situation, plan, situation_of
from engine.usage import estimate_usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.runnables import Runnable

PACE_VARIABLE = "DEMO_PACE"
_PIECE = re.compile("[\u3400-\u9fff]{1,2}|[^\\s\u3400-\u9fff]+\\s*|\\s+")


class DemoFailure(EngineError):
    """The failure that was asked for with "demo: failed"."""


class DemoChatModel(BaseChatModel):
    """Plays a lead and its subagents from the words of the request. The same request gives the same reply.

    Offered `task`, it says in two sentences how it splits the request, delegates three briefs made of the
    request's own words to subagents that are really offered, reads the files their answers name and answers
    in Markdown from what it read. Without `task` it does a brief itself: writes a file with `write_file`,
    looks at it with `bash` or `read_file`, and names it. Small talk is answered at once. Chinese is answered
    in Chinese.

    Words in the request ask for other endings, of the first subagent or, after "lead", of the lead itself:

    - "demo: cut short" (演示：中断): calls `ls` again and again until a limit ends the run, and says so then;
    - "demo: failed" (演示：失败): the model call fails in the middle of its first reply;
    - "demo: slow" (演示：缓慢): pauses `slow_seconds` in its first reply, to be cancelled or to time out.

    Usage is a count of its own and marked as an estimate.
    """

    model: str = "demo"
    pace_seconds: float = Field(default=0.02, ge=0, le=5)  # between two pieces; DEMO_PACE overrides it
    think_seconds: float = Field(default=1.0, ge=0, le=60)  # before each reply, so that there is something to watch
    slow_seconds: float = Field(default=600, ge=0, le=86_400)

    @property
    def _llm_type(self) -> str:
        return "demo"

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        pace = os.environ.get(PACE_VARIABLE)
        if pace:
            self.pace_seconds = max(float(pace), 0.0)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        situation = situation_of(messages, kwargs.get("tools") or ())
        planned = plan(situation)
        if self.pace_seconds:
            await asyncio.sleep(self._thinking(situation))
        for number, chunk in enumerate(self._chunks(planned, messages)):
            if planned.ending and number == 1:
                await self._end(planned.ending)
            yield chunk
            if self.pace_seconds:
                await asyncio.sleep(self.pace_seconds)

    def _thinking(self, situation: Situation) -> float:
        """Seconds: a moment for a lead; for a subagent one to three times `think_seconds`, by its brief."""
        if situation.is_lead:
            return self.think_seconds / 2
        return self.think_seconds * (1 + crc32(situation.request.encode("utf-8", "replace")) % 20 / 10)

    async def _end(self, ending: Ending) -> None:
        if ending is Ending.FAILED:
            raise DemoFailure("the demo model failed because the request asked it to")
        await asyncio.sleep(self.slow_seconds)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        planned = plan(situation_of(messages, kwargs.get("tools") or ()))
        if planned.ending is Ending.FAILED:
            raise DemoFailure("the demo model failed because the request asked it to")
        first, *others = self._chunks(planned, messages)
        whole = message_chunk_to_message(sum((one.message for one in others), first.message))
        return ChatResult(generations=[ChatGeneration(message=whole)])

    def _chunks(self, planned: Planned, messages: Sequence[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        for piece in _PIECE.findall(planned.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        calls = [
            tool_call_chunk(name=name, args=json.dumps(arguments, ensure_ascii=False), index=index)
            for index, (name, arguments) in enumerate(planned.calls)
        ]
        for call in calls:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
        yield ChatGenerationChunk(message=self._last(planned, messages))

    def _last(self, planned: Planned, messages: Sequence[BaseMessage]) -> AIMessageChunk:
        said = planned.text + "".join(f"{name}{arguments}" for name, arguments in planned.calls)
        usage = estimate_usage(messages, AIMessage(content=said))
        inputs, outputs = usage.input_tokens or 0, usage.output_tokens or 0
        return AIMessageChunk(
            content="",
            usage_metadata={"input_tokens": inputs, "output_tokens": outputs, "total_tokens": inputs + outputs},
            response_metadata={
                "finish_reason": "tool_calls" if planned.calls else "stop",
                "model_name": self.model,
                "usage_estimated": True,
            },
        )
