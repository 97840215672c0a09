"""The `task` tool: a lead gives a subagent something to do and waits for what comes of it."""

# ruff: noqa: TC002, TC003
# The tool's signature is read while the program runs.

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

from langchain.tools import ToolRuntime, tool
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

from engine.delegation.names import TASK
from engine.delegation.result import delegation_message
from engine.ports import ChildCall, ChildResult, RosterEntry, RunContext
from engine.prompts import task_description
from engine.stop import SubagentStatus
from engine.text import clean

__all__ = ["TASK", "delegation_message", "offered_task", "surely_refused", "task"]

logger = logging.getLogger(__name__)
_DESCRIPTION = "What the task is, in three to five words; shown to the person."
_PROMPT = "Everything the subagent needs: it sees this text and nothing of the conversation."
_SUBAGENT_TYPE = "Which subagent shall do it."


@tool(TASK)
async def task(
    description: Annotated[str, Field(description=_DESCRIPTION)],
    prompt: Annotated[str, Field(description=_PROMPT, min_length=1)],
    subagent_type: Annotated[str | list[str], Field(description=_SUBAGENT_TYPE)],
    runtime: ToolRuntime[Any, Any],
) -> ToolMessage:
    """Delegate one task to a subagent and wait for its result."""
    context: RunContext = runtime.context
    call = ChildCall(
        tool_call_id=runtime.tool_call_id or "",
        description=clean(description),
        prompt=clean(prompt),
        subagent_type=clean(as_name(subagent_type)),
    )
    try:
        result = await context.delegate.run_child(call)
    except Exception:
        logger.exception("delegation %s of run %s failed", call.tool_call_id, context.run_id)
        result = ChildResult(
            status=SubagentStatus.FAILED, text="The delegation failed for a reason inside the platform."
        )
    if result.run_id is not None:
        context.counters.children_started += 1
    return delegation_message(call.tool_call_id, result)


def as_name(subagent_type: object) -> str:
    """What the model wrote for a name; some write it as a list of one."""
    if isinstance(subagent_type, list) and len(subagent_type) == 1:
        subagent_type = subagent_type[0]
    return subagent_type if isinstance(subagent_type, str) else str(subagent_type)


def surely_refused(subagent_type: object, roster: Sequence[RosterEntry]) -> bool:
    """Whether no permitted subagent can be meant, under any spelling: such a call starts nothing.

    Looser than the match that decides at dispatch, so that whatever that accepts is counted here.
    """
    wanted = _letters(as_name(subagent_type))
    return not any(_letters(entry.name) == wanted for entry in roster)


@lru_cache(maxsize=256)
def offered_task(roster: tuple[RosterEntry, ...], max_concurrent: int, max_total: int) -> BaseTool:
    """The tool as one run's model sees it, with that run's subagents and limits. Never executed itself."""
    schema: dict[str, Any] = {
        "type": "object",
        "title": TASK,
        "properties": {
            "description": {"type": "string", "description": _DESCRIPTION},
            "prompt": {"type": "string", "description": _PROMPT},
            "subagent_type": {
                "type": "string",
                "enum": [entry.name for entry in roster],
                "description": _SUBAGENT_TYPE,
            },
        },
        "required": ["description", "prompt", "subagent_type"],
    }
    return StructuredTool(
        name=TASK,
        description=task_description(roster, max_concurrent=max_concurrent, max_total=max_total),
        args_schema=schema,
        coroutine=task.coroutine,  # type: ignore[attr-defined]
    )


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())
