"""Replies as the bytes of OpenAI's chat completions, whole or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.scripted_model.calls import ModelCall
    from tests.scripted_model.reply import Reply, ToolCall

CREATED = 1_700_000_000
DONE = b"data: [DONE]\n\n"
GARBAGE_STREAM = b'data: {"id": "x", "choices": [{"delta": oops\n\n:\x00\xff\xfe\n\n'
GARBAGE_BODY = b"<html><body>502 Bad Gateway</body></html>"
SPLIT_CHARACTERS = 2
UNREPAIRABLE = "path => notes.md, content =>"  # no brace: LangChain turns any prefix of an object into one

Delta = Mapping[str, Any]


def dumps(value: object) -> bytes:
    """JSON in raw UTF-8; escaped where a lone surrogate, which a model may well emit, leaves no other way."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def error_body(status: int, message: str, code: str = "") -> bytes:
    return dumps({"error": {"message": message, "type": "scripted_failure", "code": code or str(status)}})


class Encoder:
    """Encodes one reply for one call. A call that offers no tools never gets tool calls."""

    def __init__(self, reply: Reply, call: ModelCall) -> None:
        self.reply, self.call = reply, call
        self.calls = reply.calls if call.tool_names else ()
        self.texts = self._texts()
        self._base = {
            "id": f"chatcmpl-{call.script_id or 'plain'}-{call.number}",
            "created": CREATED,
            "model": call.body.get("model", "scripted"),
        }

    def _texts(self) -> tuple[str, ...]:
        """The pieces of the answer's text; one piece unless something needs it in several."""
        reply = self.reply
        if reply.chunks is not None:
            return reply.chunks
        if reply.tokens is not None:
            return tuple(f"t{number} " for number in range(reply.tokens))
        default = "" if self.calls else f"ok:{self.call.script_id}"
        text = default if reply.text is None else reply.text
        places = (reply.cut_after, reply.close_after, reply.stall_after, reply.error_after, reply.gate_after)
        if reply.rate_per_second or any(place is not None for place in places):
            return tuple(text[at : at + 4] for at in range(0, len(text), 4))
        return (text,) if text else ()

    @property
    def finish_reason(self) -> str:
        return self.reply.finish_reason or ("tool_calls" if self.calls else "stop")

    def usage(self) -> Mapping[str, Any] | None:
        """None when the reply reports none. Counted from the sizes unless the script says otherwise."""
        given = self.reply.usage
        if not self.reply.reports_usage:
            return None
        if isinstance(given, Mapping):
            return given
        counted = max(1, sum(map(len, self.texts)) // 4) if self.texts else 0
        tokens = self.reply.tokens if self.reply.tokens is not None else counted
        prompt, completion = given or (max(1, self.call.body_bytes // 4), tokens + 20 * len(self.calls))
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def whole(self) -> bytes:
        """The answer to a request that does not stream."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.texts)}
        message |= {"refusal": self.reply.refusal} if self.reply.refusal else {}
        if self.calls:
            message["tool_calls"] = [self._tool_call(index) for index in range(len(self.calls))]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        usage = self.usage()
        body = {**self._base, "object": "chat.completion", "choices": [choice]}
        return dumps(body | {"usage": usage} if usage else body)

    def opening(self) -> bytes:
        return self.event({"role": "assistant", "content": ""})

    def deltas(self) -> Iterator[bytes]:
        for name, said in (("reasoning_content", self.reply.reasoning), ("refusal", self.reply.refusal)):
            if said:
                yield self.event({name: said})
        for text in self.texts:
            yield self.event({"content": text})
        for index in range(len(self.calls)):
            for fragment in self._fragments(index):
                yield self.event({"tool_calls": [fragment]})

    def error(self) -> bytes:
        """An error within a stream that had begun well."""
        return b"data: " + error_body(500, self.reply.fail_message, self.reply.fail_code) + b"\n\n"

    def closing(self) -> bytes:
        closing = self.event({}, self.finish_reason)
        usage = self.usage()
        if usage and self.call.wants_usage:
            last = {**self._base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
            closing += b"data: " + dumps(last) + b"\n\n"
        return closing + DONE

    def event(self, delta: Delta, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        chunk = {**self._base, "object": "chat.completion.chunk", "choices": [choice]}
        return b"data: " + dumps(chunk) + b"\n\n"

    def _fragments(self, index: int) -> Iterator[Delta]:
        """One tool call in the pieces it is streamed in; only the first carries id and name."""
        whole = self._tool_call(index)
        if not self.reply.split:
            yield {"index": index, **whole}
            return
        arguments = whole["function"]["arguments"]
        yield {"index": index, **whole, "function": {"name": whole["function"]["name"], "arguments": ""}}
        for at in range(0, len(arguments), SPLIT_CHARACTERS):
            yield {"index": index, "function": {"arguments": arguments[at : at + SPLIT_CHARACTERS]}}

    def _tool_call(self, index: int) -> dict[str, Any]:
        call = self.calls[index]
        function = {"name": call.name, "arguments": self._arguments(call)}
        return {"id": self._call_id(index), "type": "function", "function": function}

    def _call_id(self, index: int) -> str:
        """Depends on the conversation only, so a call repeated after a crash gives the same ids."""
        if self.reply.duplicate_ids:
            return "call_duplicate"
        scope = f"{self.call.script_id}_{self.call.turn}" if self.call.script_id else f"r{self.call.number}"
        return self.calls[index].call_id or f"call_{scope}_{self.call.message_count}_{index}"

    def _arguments(self, call: ToolCall) -> str:
        if isinstance(self.reply.malformed, str):
            return self.reply.malformed
        return UNREPAIRABLE if self.reply.malformed else json.dumps(call.arguments, ensure_ascii=False)
