"""A run, and the tree of a lead and its children, may use so many tokens and no more."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.middleware.reply import (
    Guard,
    Handler,
    Request,
    Response,
    context_of,
    replace_reply,
    reply_of,
    with_note,
    without_calls,
)
from engine.stop import StopReason
from engine.usage import estimate_usage, usage_of

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from engine.limits import TokenLimit
    from engine.ports import RunContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Budget:
    limit: TokenLimit
    used: int
    scope: Literal["run", "tree"]

    def grown(self, tokens: int) -> _Budget:
        return _Budget(self.limit, self.used + tokens, self.scope)

    @property
    def share(self) -> float:
        return self.used / self.limit.max_tokens

    @property
    def is_low(self) -> bool:
        return self.share >= self.limit.warn_threshold


class TokenBudgetMiddleware(Guard):
    """Warn once when a budget runs low; when it is used up, make the reply at hand the answer.

    The warning goes into the next request only. The overshoot is one model call, because what a call costs is
    known when it is over. Where the provider reports no usage it is estimated, and the run says so.
    """

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        context = context_of(request)
        budgets = await _budgets(context)
        low = next((budget for budget in budgets if budget.is_low), None)
        warns = low is not None and not context.counters.token_warning_given
        if low and warns:
            logger.warning(
                "run %s (%s) has used %d of %d tokens of its %s budget",
                context.run_id,
                context.agent_name,
                low.used,
                low.limit.max_tokens,
                low.scope,
            )
            request = with_note(request, _warning(low))
        response = await handler(request)
        context.counters.token_warning_given |= warns
        reply = reply_of(response)
        if reply is None:
            return response
        tokens = _count(request, reply, context)
        spent = next((budget for budget in budgets if budget.grown(tokens).share >= 1), None)
        if spent is None or not reply.tool_calls:
            return response
        _cap(context, spent.grown(tokens))
        return replace_reply(response, without_calls(reply))


async def _budgets(context: RunContext) -> list[_Budget]:
    budgets = []
    if context.limits.tokens:
        budgets.append(_Budget(context.limits.tokens, context.counters.tokens, "run"))
    if context.limits.tree_tokens:
        budgets.append(_Budget(context.limits.tree_tokens, await context.delegate.tree_tokens(), "tree"))
    return budgets


def _count(request: Request, reply: AIMessage, context: RunContext) -> int:
    usage = usage_of(reply)
    if usage is None:
        system = [request.system_message] if request.system_message else []
        usage = estimate_usage([*system, *request.messages], reply)
    tokens = usage.total_tokens or 0
    context.counters.tokens += tokens
    context.counters.tokens_estimated |= usage.estimated
    return tokens


def _cap(context: RunContext, budget: _Budget) -> None:
    counters = context.counters
    if counters.stop_reason is not None:
        return
    counters.stop_reason = StopReason.TOKEN_CAPPED
    counters.stop_detail = {
        "limit": budget.limit.max_tokens,
        "used": budget.used,
        "layer": budget.limit.layer,
        "scope": budget.scope,
    }
    logger.warning("run %s ended by its token budget: %d of %d", context.run_id, budget.used, budget.limit.max_tokens)


def _warning(budget: _Budget) -> str:
    whose = "You have" if budget.scope == "run" else "You and your subagents have"
    return (
        f"{whose} used {budget.used} of {budget.limit.max_tokens} tokens. When they are used up, no tool call "
        "is run any more: finish what matters most and prepare to answer."
    )
