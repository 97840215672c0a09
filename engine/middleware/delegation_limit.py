"""How many subagents a lead may start: in one reply, and in the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.delegation.names import TASK
from engine.delegation.task import offered_task, surely_refused
from engine.middleware.reply import (
    Guard,
    Handler,
    Request,
    Response,
    context_of,
    open_calls,
    refusal,
    replace_reply,
    reply_of,
)
from engine.prompts import may_delegate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import ToolMessage
    from langchain_core.messages.tool import ToolCall
    from langchain_core.tools import BaseTool

    from engine.ports import RunContext

COUNTED = frozenset({TASK})


class SubagentLimitMiddleware(Guard):
    """Offer `task` with this run's subagents and limits while there is something left, and answer calls above
    them.

    A call above a limit is not started; its result, stored together with the reply, says so and why. Only
    started subagents use up the total: a name that is refused does not. When the total is used up the tool is
    no longer offered, and the lead goes on to answer from what it has.
    """

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        context = context_of(request)
        response = await handler(request.override(tools=_offered(request, context)))
        reply = reply_of(response)
        if reply is None:
            return response
        calls = [call for call in open_calls(response, reply) if call["name"] in COUNTED]
        refusals = refuse_above_limits(calls, context)
        return replace_reply(response, reply, results=refusals) if refusals else response


def refuse_above_limits(calls: Sequence[ToolCall], context: RunContext) -> list[ToolMessage]:
    """The results of those calls that must not be started: the first ones fit, the rest do not."""
    limits = context.limits
    if not may_delegate(context.roster, limits, delegation_enabled=context.delegation_enabled):
        why = f"{TASK} is not available to subagents" if context.is_subagent else "this run may not delegate"
        return [refusal(call, f"Not started: {why}. Do the work yourself.") for call in calls]
    remaining = max(limits.max_total_subagents - context.counters.children_started, 0)
    allowed = min(limits.max_concurrent_subagents, remaining)
    counted = [call for call in calls if not surely_refused(call["args"].get("subagent_type", ""), context.roster)]
    return [refusal(call, _sentence(context, remaining)) for call in counted[allowed:]]


def _sentence(context: RunContext, remaining: int) -> str:
    limits = context.limits
    if remaining > limits.max_concurrent_subagents:
        return (
            f"Not started: at most {limits.max_concurrent_subagents} subagents may be started in one reply. "
            "Call again in a later reply if this is still needed."
        )
    return (
        f"Not started: this run may start {limits.max_total_subagents} subagents and they are used up. "
        "Do what is left yourself, or answer with what you have."
    )


def _offered(request: Request, context: RunContext) -> list[BaseTool | dict[str, Any]]:
    limits = context.limits
    may = may_delegate(context.roster, limits, delegation_enabled=context.delegation_enabled)
    left = limits.max_total_subagents - context.counters.children_started
    offered: list[BaseTool | dict[str, Any]] = []
    for tool in request.tools:
        if getattr(tool, "name", None) != TASK:
            offered.append(tool)
        elif may and left > 0:
            offered.append(offered_task(context.roster, limits.max_concurrent_subagents, limits.max_total_subagents))
    return offered
