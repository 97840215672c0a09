"""From a definition to a compiled agent, and from a transcript to the steps of a run."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from langchain.agents import create_agent

from engine.delegation.task import TASK, delegation_message, task
from engine.errors import EngineError
from engine.middleware.chain import guards
from engine.middleware.model_stream import TextDelta
from engine.middleware.summarization import SummaryWriter
from engine.middleware.turn_limit import cap_turns
from engine.ports import RunContext, Summary
from engine.tracing import keep_spans_cheap
from engine.transcript import counters_of, final_text, is_answered, partial_text, refusal_of_last, settle

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

    from engine.models.gate import ModelGate
    from engine.models.registry import ModelRegistry

__all__ = [
    "AgentSpec",
    "Step",
    "Summary",
    "TextDelta",
    "build",
    "compiled",
    "counters_of",
    "delegation_message",
    "drive",
    "final_text",
    "is_answered",
    "partial_text",
    "refusal_of_last",
    "settle",
]

MAX_COMPILED: Final = 128  # of one configuration on one loop; compiling takes a few milliseconds
GRAPH_STEPS_PER_TURN: Final = 2  # the model, then its tools
SPARE_GRAPH_STEPS: Final = 10

logger = logging.getLogger(__name__)

Agent: TypeAlias = Any  # LangGraph's CompiledStateGraph, whose type parameters say nothing here


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What two agents must share to be one compiled agent. Prompts and limits come with each run."""

    model: str  # a name in the model registry
    tools: tuple[str, ...] = ()  # without the delegation tools
    is_subagent: bool = False
    summary_model: str = ""  # who writes summaries; empty: `model`
    thinking: bool = False  # whether the model shall think at length, where its entry says how


@dataclass(frozen=True, slots=True)
class Step:
    """Messages to store before anything else happens: a reply with its refusals, or a tool result."""

    messages: list[BaseMessage]


_compiled: WeakKeyDictionary[
    ModelRegistry, WeakKeyDictionary[asyncio.AbstractEventLoop, OrderedDict[AgentSpec, Agent]]
] = WeakKeyDictionary()


def compiled(spec: AgentSpec, models: ModelRegistry) -> Agent:
    """The agent of this spec, one for all runs on the running loop.

    Kept as long as the registry, which is one for each accepted configuration: when that changes, so do the
    agents. Raises UnknownModel or ModelUnavailable.
    """
    agents = _compiled.setdefault(models, WeakKeyDictionary()).setdefault(asyncio.get_running_loop(), OrderedDict())
    if spec in agents:
        agents.move_to_end(spec)
        return agents[spec]
    from engine.tools.registry import build_tools

    tools = build_tools([name for name in spec.tools if name != TASK])
    agent = agents[spec] = build(
        models.chat_model(spec.model, thinking=spec.thinking),
        tools,
        is_subagent=spec.is_subagent,
        gate=models.gate(spec.model),
        summary_writers=_summary_writers(spec, models),
    )
    if len(agents) > MAX_COMPILED:
        agents.popitem(last=False)
    return agent


def _summary_writers(spec: AgentSpec, models: ModelRegistry) -> list[SummaryWriter]:
    """The models that may write summaries: the configured one, and the run's own."""
    writers = []
    for name in dict.fromkeys((spec.summary_model or spec.model, spec.model)):
        try:
            writers.append(SummaryWriter(name, models.chat_model(name), models.gate(name)))
        except EngineError as fault:
            logger.warning("summaries are not written by %s: %s", name, fault)
    return writers


def build(
    chat_model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    is_subagent: bool,
    gate: ModelGate | None = None,
    summary_writers: Sequence[SummaryWriter] = (),
) -> Agent:
    """Compile an agent with all guards; a lead also gets `task`, offered only to runs that may delegate."""
    keep_spans_cheap()
    return create_agent(
        chat_model,
        tools=[*tools] if is_subagent else [*tools, task],
        middleware=guards(gate, summary_writers),
        context_schema=RunContext,
    )


async def drive(
    agent: Agent, messages: Sequence[BaseMessage], context: RunContext
) -> AsyncGenerator[TextDelta | Summary | Step]:
    """Run the agent from a transcript whose calls all have results, to its end.

    Yields pieces of the reply being written and, under the same message id, the reply as it must be stored;
    then each tool result as soon as it is there; and a summary that requests carry from now on, which must be
    stored too. It is pulled: the tools of a reply start, and the next model
    call is made, only when the consumer asks for more. So what was yielded can be stored before anything
    follows from it.

    `context.counters` is kept up to date and says which guard ended the run. What the model call raises comes
    through (see `engine.errors.explain_model_error`). Cancelling the consumer's task, or closing this
    generator, ends the model call or the tools at once.
    """
    remaining = context.limits.max_turns - context.counters.model_calls
    if remaining <= 0:
        cap_turns(context)
        return
    stream = agent.astream(
        {"messages": list(messages)},
        config={
            "recursion_limit": remaining * GRAPH_STEPS_PER_TURN + SPARE_GRAPH_STEPS,
            "run_name": context.agent_name,
            "metadata": {"run_id": context.run_id, "thread_id": context.thread_id, **context.labels},
        },
        context=context,
        stream_mode=["updates", "custom"],
    )
    async with aclosing(stream):
        async for mode, part in stream:
            if mode == "custom":
                if isinstance(part, TextDelta | Summary):
                    yield part
                continue
            new = [message for update in _updates(part) for message in update.get("messages", ())]
            if new:
                yield Step(new)


def _updates(part: Any) -> Iterator[dict[str, Any]]:
    """The state updates of a graph step: {node: update, or a list of updates, or None}."""
    for update in part.values():
        for one in update if isinstance(update, list) else (update,):
            if isinstance(one, dict):
                yield one
