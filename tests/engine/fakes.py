"""A scripted chat model and the ports of a run, for tests that drive real compiled agents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from engine.agent import Step, TextDelta, build, drive
from engine.limits import Limits
from engine.ports import ChildCall, ChildResult, RosterEntry, RunContext
from engine.stop import SubagentStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.runnables import Runnable

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Say:
    """One scripted reply. `raw_calls`: (name, argument text, id) as a provider streams them, word for word."""

    text: str = ""
    calls: Sequence[Call] = ()
    raw_calls: Sequence[tuple[str | None, str | None, str | None]] = ()
    tokens: int | None = None
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as the model got it."""

    messages: list[BaseMessage]
    tools: list[dict[str, Any]]

    @property
    def tool_names(self) -> list[str]:
        return [one["function"]["name"] for one in self.tools]

    def tool(self, name: str) -> dict[str, Any]:
        return next(one["function"] for one in self.tools if one["function"]["name"] == name)


class ScriptedChat(BaseChatModel):
    """Plays its replies in order, word by word; the last one is repeated."""

    replies: list[Any] = []
    _seen: list[Seen] = PrivateAttr(default_factory=list)
    _number: int = PrivateAttr(default=0)

    @property
    def seen(self) -> list[Seen]:
        return self._seen

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **kwargs)

    def _next(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> Say:
        self._seen.append(Seen(list(messages), kwargs.get("tools", [])))
        reply = self.replies[min(self._number, len(self.replies) - 1)]
        self._number += 1
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            reply = reply(messages)
        return reply if isinstance(reply, Say) else Say(reply)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = self._next(messages, kwargs)
        for word in reply.text.split(" ") if reply.text else ():
            await asyncio.sleep(0)
            yield _chunk(content=f"{word} ")
        raw = [(name, _json(args), f"c{self._number}_{n}") for n, (name, args) in enumerate(reply.calls)]
        for index, (name, args, call_id) in enumerate([*raw, *reply.raw_calls]):
            yield _chunk(tool_call_chunks=[{"name": name, "args": args, "id": call_id, "index": index}])
        end: dict[str, Any] = {"response_metadata": {"finish_reason": reply.finish_reason}}
        if reply.tokens is not None:
            end["usage_metadata"] = {
                "input_tokens": reply.tokens - 1,
                "output_tokens": 1,
                "total_tokens": reply.tokens,
            }
        yield _chunk(**end)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._next(messages, kwargs).text))])


def _chunk(**fields: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(**{"content": "", **fields}))


def _json(args: dict[str, Any]) -> str:
    import json

    return json.dumps(args)


@dataclass
class Children:
    """A Delegate that answers at once, or with what `answer` gives."""

    answer: Callable[[ChildCall], ChildResult] | None = None
    tree: int = 0
    calls: list[ChildCall] = field(default_factory=list)

    async def run_child(self, call: ChildCall) -> ChildResult:
        self.calls.append(call)
        if self.answer:
            return self.answer(call)
        return done(f"did {call.prompt}", run_id=f"run-{len(self.calls)}")

    async def tree_tokens(self) -> int:
        return self.tree


def done(text: str, *, run_id: str = "child", **facts: Any) -> ChildResult:
    return ChildResult(
        status=SubagentStatus.COMPLETED, text=text, run_id=run_id, thread_id=f"t-{run_id}", subagent="scout", **facts
    )


SCOUT = RosterEntry(name="scout", description="Looks things up.")


def limits(**changes: Any) -> Limits:
    fields: dict[str, Any] = {
        "max_turns": 20,
        "timeout_seconds": 60,
        "max_concurrent_subagents": 3,
        "max_total_subagents": 6,
    }
    return Limits(**(fields | changes))


def run_context(
    *, children: Children | None = None, workspace: Any = None, sandbox: Any = None, **changes: Any
) -> RunContext:
    fields: dict[str, Any] = {
        "run_id": "run",
        "thread_id": "thread",
        "agent_name": "lead_agent",
        "is_subagent": False,
        "system_prompt": "You lead.",
        "limits": limits(),
        "workspace": workspace or Path("/nonexistent"),
        "sandbox": sandbox,
        "delegate": children or Children(),
        "roster": (SCOUT,),
        "delegation_enabled": True,
    }
    return RunContext(**(fields | changes))


@tool
async def echo(text: str) -> str:
    """Repeat the text."""
    return f"echo {text}"


@dataclass
class Outcome:
    """Everything a run yielded, in order, and what it was run with."""

    model: ScriptedChat
    context: RunContext
    yielded: list[TextDelta | Step]

    @property
    def steps(self) -> list[list[BaseMessage]]:
        return [one.messages for one in self.yielded if isinstance(one, Step)]

    @property
    def messages(self) -> list[BaseMessage]:
        return [message for step in self.steps for message in step]

    @property
    def results(self) -> list[ToolMessage]:
        return [message for message in self.messages if isinstance(message, ToolMessage)]

    @property
    def replies(self) -> list[AIMessage]:
        return [message for message in self.messages if isinstance(message, AIMessage)]

    @property
    def answer(self) -> str:
        return str(self.replies[-1].text).strip()


async def play(
    replies: Sequence[Any],
    *,
    tools: Sequence[Any] = (echo,),
    context: RunContext | None = None,
    messages: Sequence[BaseMessage] = (HumanMessage("Go on."),),
) -> Outcome:
    """Drive a fresh agent over the scripted replies to its end."""
    context = context or run_context()
    model = ScriptedChat(replies=list(replies))
    agent = build(model, tools, is_subagent=context.is_subagent)
    return Outcome(model, context, [one async for one in drive(agent, messages, context)])
