"""Driving the agent of one run: its parts as they come, its faults told from our own, its end not to be torn."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from engine.agent import AgentSpec, Step, Summary, TextDelta, compiled, drive
from engine.wire import summary_from_wire
from runs.errors import Fenced
from runs.group_commit import NO_DATABASE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

    from langchain_core.messages import BaseMessage

    from engine.ports import RunContext
    from runs.transcript import WireMessage
    from runs.worker import plans

Result = TypeVar("Result")


class DriveFailed(Exception):
    """What the agent raised: as a rule its model call. Everything else that goes wrong here is our own."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


async def parts_of(
    plan: plans.Plan, messages: list[BaseMessage], context: RunContext
) -> AsyncGenerator[TextDelta | Summary | Step]:
    """Everything the agent says and does from this transcript on. Raises DriveFailed for what it raises."""
    try:
        summary_model = plan.limits.summary.model if plan.limits.summary else ""
        spec = AgentSpec(
            model=plan.model,
            tools=plan.tools,
            is_subagent=plan.is_subagent,
            summary_model=summary_model,
            thinking=plan.thinking,
        )
        async with aclosing(drive(compiled(spec, plan.models), messages, context)) as parts:
            async for part in parts:
                yield part
    except (Fenced, *NO_DATABASE):
        raise
    except Exception as fault:
        raise DriveFailed(fault) from fault


async def uncancelled(work: Coroutine[Any, Any, Result]) -> Result:
    """Finish `work` even when this task is cancelled meanwhile: an end that was begun is written."""
    task = asyncio.ensure_future(work)
    while True:
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
            continue
        return task.result()


def begun_at(transcript: list[WireMessage]) -> int:
    """Where among the messages (no summaries) what this run has said begins: after the request, not after a steer."""
    messages = [message for message in transcript if summary_from_wire(message) is None]
    asked = (at for at in range(len(messages), 0, -1) if messages[at - 1]["type"] == "human")
    return next((at for at in asked if not messages[at - 1].get("steer")), 0)
