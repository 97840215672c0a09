"""The answer to a chat completion, whole or in events, as LangChain's message chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langchain_core.messages.tool import tool_call_chunk

from engine.models.openai_compatible_wire import (
    UnreadableAnswer,
    count_or_none,
    decode,
    encode,
    raise_error_of,
    text_or_none,
)

DONE: Final = b"[DONE]"


@dataclass(slots=True)
class CallPiece:
    """What came of one tool call since the last look. None: nothing yet."""

    index: int
    call_id: str | None
    name: str | None
    arguments: list[str] = field(default_factory=list)

    def is_of(self, index: int, call_id: str | None) -> bool:
        return self.index == index and (call_id is None or self.call_id in (None, call_id))


class ReplyReader:
    """Collects the events of one answer and gives what came since the last look as one chunk.

    `hide` takes secrets out of what a server says about an error. Usage is given once, at the end: some servers
    repeat the running total in every event.
    """

    def __init__(self, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self.finish_reason = ""
        self.done = False
        self._usage: UsageMetadata | None = None
        self._texts: list[str] = []
        self._calls: list[CallPiece] = []
        self._call_ids: dict[int, str | None] = {}
        self._extra: dict[str, str] = {}
        self._metadata: dict[str, str] = {"model_provider": "openai"}

    def read(self, payload: bytes) -> None:
        """Take one event. Raises ServerRefusal for an error in it and UnreadableAnswer."""
        if payload == DONE:
            self.done = True
            return
        event = decode(payload)
        raise_error_of(event, self._hide)
        self._usage = usage_metadata(event.get("usage")) or self._usage
        choices = event.get("choices")
        if not choices:
            return
        choice = choices[0] if isinstance(choices, list) else None
        delta = (choice.get("delta") or choice.get("message") or {}) if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(delta, dict):
            raise UnreadableAnswer("choices: expected a list of objects")
        self._read_delta(delta)
        reason, model = text_or_none(choice.get("finish_reason")), text_or_none(event.get("model"))
        if reason and not self.finish_reason:
            self.finish_reason = self._metadata["finish_reason"] = reason
            self._metadata |= {"model_name": model} if model else {}

    def chunk(self) -> AIMessageChunk | None:
        """What is new; None when nothing is."""
        usage = self._usage if self.done else None
        if not (self._texts or self._calls or self._extra or self._metadata or usage or self.done):
            return None
        chunk = AIMessageChunk(
            content="".join(self._texts),
            tool_call_chunks=[
                tool_call_chunk(
                    name=call.name,
                    args="".join(call.arguments) if call.arguments else None,
                    id=call.call_id,
                    index=call.index,
                )
                for call in self._calls
            ],
            additional_kwargs=self._extra,
            response_metadata=self._metadata,
            usage_metadata=usage,
            chunk_position="last" if self.done else None,
        )
        self._texts, self._calls = [], []
        self._extra, self._metadata = {}, {}
        self._usage = None if usage else self._usage
        return chunk

    def _read_delta(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        if isinstance(content, list):
            content = "".join(text_or_none(part.get("text")) or "" for part in content if isinstance(part, dict))
        if content:
            self._texts.append(_needed_text(content, "content"))
        for name, spellings in (("reasoning_content", ("reasoning_content", "reasoning")), ("refusal", ("refusal",))):
            said = next((text for one in spellings if (text := text_or_none(delta.get(one)))), None)
            if said:
                self._extra[name] = self._extra.get(name, "") + said
        calls = delta.get("tool_calls") or []
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise UnreadableAnswer("tool_calls: expected a list of objects")
        for call in calls:
            self._read_call(call)

    def _read_call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function") or {}
        if not isinstance(function, dict):
            raise UnreadableAnswer("function: expected an object")
        call_id, name = text_or_none(call.get("id")), text_or_none(function.get("name"))
        index = count_or_none(call.get("index"))
        if index is None:
            # A server that does not number its calls sends each whole, or its first piece with an id.
            index = max(self._call_ids, default=-1) + (1 if call_id or not self._call_ids else 0)
        if call_id and self._call_ids.get(index) == call_id:
            call_id = name = None  # repeated with every piece; LangChain would join the names
        self._call_ids.setdefault(index, call_id)
        piece = next((one for one in self._calls if one.is_of(index, call_id)), None)
        if piece is None:
            piece = CallPiece(index, call_id, name)
            self._calls.append(piece)
        else:
            piece.call_id, piece.name = piece.call_id or call_id, piece.name or name
        arguments = function.get("arguments")
        if arguments is not None:
            piece.arguments.append(arguments if isinstance(arguments, str) else encode(arguments).decode())


def _needed_text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise UnreadableAnswer(f"{field}: expected text, got {type(value).__name__}")
    return value


def usage_metadata(usage: object) -> UsageMetadata | None:
    """LangChain's form of a `usage` object; None unless both the prompt and the completion are counted."""
    if not isinstance(usage, Mapping):
        return None
    inputs, outputs = count_or_none(usage.get("prompt_tokens")), count_or_none(usage.get("completion_tokens"))
    if inputs is None or outputs is None:
        return None
    total = count_or_none(usage.get("total_tokens"))
    read, written = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    cached = read.get("cached_tokens", count_or_none(usage.get("prompt_cache_hit_tokens")))
    return UsageMetadata(
        input_tokens=inputs,
        output_tokens=outputs,
        total_tokens=inputs + outputs if total is None else total,
        input_token_details=InputTokenDetails(**_known(cache_read=cached, audio=read.get("audio_tokens"))),  # type: ignore[typeddict-item]
        output_token_details=OutputTokenDetails(
            **_known(reasoning=written.get("reasoning_tokens"), audio=written.get("audio_tokens"))  # type: ignore[typeddict-item]
        ),
    )


def _details(usage: Mapping[str, Any], name: str) -> dict[str, int]:
    details = usage.get(name)
    counted = {key: count_or_none(count) for key, count in details.items()} if isinstance(details, Mapping) else {}
    return _known(**counted)


def _known(**counts: int | None) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}
