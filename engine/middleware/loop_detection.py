"""An agent that repeats its tool calls is told so, and ended when it does not stop."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from engine.loops import LoopKind, Repetition
from engine.middleware.names import ANSWER_NOW
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
    with_note,
    without_calls,
)
from engine.stop import StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.ports import RunContext

logger = logging.getLogger(__name__)

FINAL_TURN = (
    "You went round in circles, so no tool call is run any more in this run. Answer now with what you have, "
    f"and say what is missing. {ANSWER_NOW}"
)
NOT_RUN = "Not run: it repeats what was done before, and the limit for that is reached. Answer with what you have."


class LoopDetectionMiddleware(Guard):
    """Warn in the next request; at the limit run nothing more and let the model answer once.

    Calls that were refused or failed count like any other: repeating them is as endless. The calls of the reply
    that reaches the limit are answered, not run; the reply after that is the run's last one, so an endless
    identical loop ends after one model call more than the limit. Source: product.md §5.2.
    """

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        context = context_of(request)
        counters, limit = context.counters, context.limits.loops
        if counters.stop_reason is StopReason.LOOP_CAPPED:
            return await _last_reply(request, handler)
        if limit is None:
            return await handler(request)
        if counters.repetitions:
            request = with_note(request, warning(counters.repetitions))
        response = await handler(request)
        reply = reply_of(response)
        counters.repetitions = []
        if reply is None or not reply.tool_calls:
            return response
        found = counters.loops.note([(call["name"], call["args"]) for call in reply.tool_calls], limit)
        _log(found, context)
        if not counters.take_in(found):
            return response
        refusals = [refusal(call, NOT_RUN) for call in open_calls(response, reply)]
        return replace_reply(response, reply, results=refusals)


def warning(repetitions: Sequence[Repetition]) -> str:
    """What the next request says about the repetitions of the last reply."""
    lines = [
        f"You have made the same tool call ({one.tool}) {one.count} times."
        if one.kind is LoopKind.IDENTICAL
        else f"You have called {one.tool} {one.count} times."
        for one in repetitions
    ]
    least = min(one.limit for one in repetitions)
    return " ".join(
        [
            *lines,
            "Use the results you have, try something else, or answer.",
            f"At {least} times no tool call is run any more.",
        ]
    )


async def _last_reply(request: Request, handler: Handler) -> Response:
    response = await handler(with_note(request, FINAL_TURN))
    reply = reply_of(response)
    if reply is None or not reply.tool_calls:
        return response
    return replace_reply(response, without_calls(reply))


def _log(found: Sequence[Repetition], context: RunContext) -> None:
    for one in found:
        logger.warning(
            "run %s (%s) %s: %s %d times (%s), limit %d by %s",
            context.run_id,
            context.agent_name,
            "ended for going round in circles" if one.stops else "repeats itself",
            one.tool,
            one.count,
            one.kind.value,
            one.limit,
            one.layer,
        )
