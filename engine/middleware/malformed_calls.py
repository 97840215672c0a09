"""A call that cannot be meant as it stands is answered, not run: its arguments are no JSON, or were cut.

An answer that was cut says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages.tool import ToolCall, tool_call

from engine.endings import says_something, was_cut
from engine.middleware.reply import (
    Guard,
    Handler,
    Request,
    Response,
    refusal,
    replace_reply,
    reply_of,
    with_calls,
    with_more_text,
)
from engine.text import REPLACED, clean, clean_json, count_replaced, shorten

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, ToolMessage

MAX_REPLY_CHARACTERS = 1_000_000
MAX_NAME_CHARACTERS = 200
MAX_QUOTE_CHARACTERS = 300
CUT_NOTE = "\n\n[Cut off here: the reply reached the model's output limit.]"


class MalformedCallsMiddleware(Guard):
    """Make a reply storable: clean text, no half call, each refused call with its result."""

    async def awrap_model_call(self, request: Request, handler: Handler) -> Response:
        response = await handler(request)
        reply = reply_of(response)
        if reply is None:
            return response
        reply = cleaned(reply)
        results: list[ToolMessage] = []
        if reply.invalid_tool_calls:
            reply, results = with_invalid_calls_answered(reply)
        if reply.tool_calls and not results and was_cut(reply):
            results = [refusal(reply.tool_calls[-1], _CUT_SENTENCE)]
        elif not reply.tool_calls and says_something(reply) and was_cut(reply):
            reply = with_more_text(reply, CUT_NOTE)
        return replace_reply(response, reply, results=results)


_CUT_SENTENCE = (
    "This call was not run: your reply reached the output limit in the middle of it. "
    "Make the call again with shorter arguments, or split the work into several calls."
)


def cleaned(reply: AIMessage) -> AIMessage:
    """The reply with text, arguments and names that every store and socket can carry, within bounds."""
    content = clean_json(reply.content)
    if isinstance(content, str):
        content = shorten(content, MAX_REPLY_CHARACTERS)
    calls = [_cleaned_call(call) for call in reply.tool_calls]
    if content == reply.content and calls == reply.tool_calls:
        return reply
    changes: dict[str, object] = {"content": content}
    if replaced := count_replaced(reply.content) + sum(count_replaced(call["args"]) for call in reply.tool_calls):
        changes["additional_kwargs"] = {**reply.additional_kwargs, REPLACED: replaced}
    reply = reply.model_copy(update=changes)
    return (
        reply
        if calls == reply.tool_calls
        else with_calls(reply, calls).model_copy(update={"invalid_tool_calls": reply.invalid_tool_calls})
    )


def with_invalid_calls_answered(reply: AIMessage) -> tuple[AIMessage, list[ToolMessage]]:
    """Turn calls whose arguments did not parse into calls without arguments, each with the result that says
    so.

    The reply's ids must be unique already. The unparsable calls come after the sound ones.
    """
    calls = list(reply.tool_calls)
    results = []
    for invalid in reply.invalid_tool_calls:
        call = tool_call(name=_name(invalid["name"]), args={}, id=invalid["id"])
        calls.append(call)
        results.append(refusal(call, _parse_sentence(invalid["args"], invalid["error"])))
    return with_calls(reply, calls), results


def _parse_sentence(arguments: str | None, error: str | None) -> str:
    problem = f" ({shorten(clean(error), MAX_QUOTE_CHARACTERS)})" if error else ""
    quote = shorten(clean(arguments or ""), MAX_QUOTE_CHARACTERS)
    return (
        f"This call was not run: its arguments are not valid JSON{problem}. They began: {quote}\n"
        "Make the call again with complete, valid JSON."
    )


def _cleaned_call(call: ToolCall) -> ToolCall:
    arguments = clean_json(call["args"])
    return tool_call(name=_name(call["name"]), args=arguments if isinstance(arguments, dict) else {}, id=call["id"])


def _name(name: str | None) -> str:
    return shorten(clean(name or "").strip(), MAX_NAME_CHARACTERS) or "unnamed"
