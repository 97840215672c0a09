"""`max_turns` counts model calls. The last one is told to answer; what it still wants to call is not run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from engine.middleware.names import ANSWER_NOW
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

if TYPE_CHECKING:
    from engine.ports import RunContext

logger = logging.getLogger(__name__)

LAST_TURN = (
    "This is your last turn: after it nothing can be called any more. "
    f"Answer now with what you have, and say what is missing. {ANSWER_NOW}"
)


class TurnLimitMiddleware(Guard):
    """Count this call and, when it is the last permitted one, make its reply the answer.

    The count starts from `context.counters`, so a run that another worker continues keeps it. A reply that
    finishes by itself on the last turn is an ordinary end without a stop reason.
    """

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        context = context_of(request)
        turn = context.counters.model_calls + 1
        is_last = turn >= context.limits.max_turns
        response = await handler(with_note(request, LAST_TURN) if is_last else request)
        context.counters.model_calls = turn
        reply = reply_of(response)
        if not is_last or reply is None or not reply.tool_calls:
            return response
        cap_turns(context)
        return replace_reply(response, without_calls(reply))


def cap_turns(context: RunContext) -> None:
    """Note that the turn limit ended the run, unless another guard did before."""
    counters, limits = context.counters, context.limits
    if counters.stop_reason is None:
        counters.stop_reason = StopReason.TURN_CAPPED
        counters.stop_detail = {
            "limit": limits.max_turns,
            "used": counters.model_calls,
            "layer": limits.max_turns_layer,
        }
        logger.info("run %s ended by its limit of %d turns", context.run_id, limits.max_turns)
