"""A reply that is no answer is not taken for one: an empty one is asked for again, a refused one runs nothing."""

from __future__ import annotations

import logging
from typing import Final

from langchain.agents.middleware import ModelResponse

from engine.endings import refusal_of, says_something
from engine.middleware.reply import (
    Guard,
    Handler,
    Request,
    Response,
    context_of,
    replace_reply,
    reply_of,
    with_calls,
    with_note,
)

logger = logging.getLogger(__name__)

NUDGE: Final = "Your last reply was empty. Answer now, or call a tool if something is missing."


class EmptyRepliesMiddleware(Guard):
    """Ask once more after a reply without a word and without a call.

    The empty reply is stored as well, since it was paid for and was a turn. Stands outside of the guards that count
    turns and tokens. A run that a guard has ended, or that has no turn left, is not asked again.
    """

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        response = await handler(request)
        context, reply = context_of(request), reply_of(response)
        counters = context.counters
        over = counters.stop_reason is not None or counters.model_calls >= context.limits.max_turns
        if reply is None or says_something(reply) or over or refusal_of(reply):
            return response
        logger.info("run %s: the model's reply was empty, it is asked once more", context.run_id)
        second = await handler(with_note(request, NUDGE))
        return ModelResponse(result=[*response.result, *second.result], structured_response=second.structured_response)


class RefusalsMiddleware(Guard):
    """Take off the calls of a reply that was stopped for safety: they may be halves. Whoever ends the run says why."""

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        response = await handler(request)
        reply = reply_of(response)
        if reply is None or not (reply.tool_calls or reply.invalid_tool_calls) or refusal_of(reply) is None:
            return response
        return replace_reply(response, with_calls(reply, ()))
