"""Every tool call has an id that no other call of the transcript has, whatever the provider sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage

from engine.middleware.reply import Guard, Handler, Request, Response, replace_reply, reply_of, with_calls
from engine.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_ID_CHARACTERS = 200
AnyCall = TypeVar("AnyCall", bound=Any)


class CallIdsMiddleware(Guard):
    """Give calls without an id, or with one that is taken, a new one."""

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        response = await handler(request)
        reply = reply_of(response)
        if reply is None or not (reply.tool_calls or reply.invalid_tool_calls):
            return response
        # The whole history, also where the request carries only its end.
        return replace_reply(response, unique_ids(reply, request.state.get("messages", request.messages)))


def unique_ids(reply: AIMessage, history: Iterable[BaseMessage]) -> AIMessage:
    """The reply with an id for each call, unparsable ones too, that neither history nor reply uses twice."""
    taken = {call["id"] for message in history if isinstance(message, AIMessage) for call in message.tool_calls}
    calls = [_with_free_id(call, taken) for call in reply.tool_calls]
    invalid = [_with_free_id(call, taken) for call in reply.invalid_tool_calls]
    if calls == reply.tool_calls and invalid == reply.invalid_tool_calls:
        return reply
    return with_calls(reply, calls).model_copy(update={"invalid_tool_calls": invalid})


def _with_free_id(call: AnyCall, taken: set[str | None]) -> AnyCall:
    given = call["id"]
    usable = isinstance(given, str) and given.strip() and len(given) <= MAX_ID_CHARACTERS and clean(given) == given
    call_id = given if usable and given not in taken else f"call_{uuid4().hex}"
    taken.add(call_id)
    return call if call_id == given else cast("AnyCall", {**call, "id": call_id})
