"""What providers' servers say on the wire, each in its own words: one turn with a tool call, then the answer.

Shapes after the providers' published API references. Every server thinks first, calls `echo` and answers from its
result; usage counts 100 tokens in, of which 60 from the cache, and 7 out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

THOUGHT: Final = "I should call the tool."
ANSWER: Final = "The tool said: echo 你好."
ARGUMENTS: Final = {"text": "你好"}
SIGNATURE: Final = "c2lnbmVk"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as a server got it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


def _events(*events: object, done: bool = False) -> bytes:
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return "".join([*lines, *(["data: [DONE]\n\n"] if done else [])]).encode()


def openai(asked: Asked, *, thinks: str = "") -> bytes:
    """`thinks`: the field that reasoning comes in; empty for a server that keeps it to itself."""
    call = {"id": "call_1", "type": "function", "function": {"name": "echo", "arguments": json.dumps(ARGUMENTS)}}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if answered(asked):
        deltas += [{"content": ANSWER[:9]}, {"content": ANSWER[9:]}]
    else:
        deltas += [{thinks: THOUGHT[:5]}, {thinks: THOUGHT[5:]}] if thinks else []
        deltas += [{"tool_calls": [{"index": 0, **call}]}]
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    common = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "server-model-2026"}
    chunks = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "stop" if answered(asked) else "tool_calls"
    chunks.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks.append({**common, "choices": [], "usage": usage})
    return _events(*chunks, done=True)


def deepseek(asked: Asked) -> bytes:
    return openai(asked, thinks="reasoning_content")


def vllm(asked: Asked) -> bytes:
    return openai(asked, thinks="reasoning")


def anthropic(asked: Asked) -> bytes:
    final = answered(asked)
    usage = {
        "input_tokens": 40,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []}
    start = {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]]
    if final:
        blocks = [({"type": "text", "text": ""}, [{"type": "text_delta", "text": ANSWER}])]
    else:
        thinking = [
            {"type": "thinking_delta", "thinking": THOUGHT},
            {"type": "signature_delta", "signature": SIGNATURE},
        ]
        pieces = [{"type": "input_json_delta", "partial_json": json.dumps(ARGUMENTS)}]
        blocks = [
            ({"type": "thinking", "thinking": "", "signature": ""}, thinking),
            ({"type": "tool_use", "id": "toolu_1", "name": "echo", "input": {}}, pieces),
        ]
    events: list[dict[str, Any]] = [start]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = "end_turn" if final else "tool_use"
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {**usage, "output_tokens": 7},
        }
    )
    events.append({"type": "message_stop"})
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode() for event in events
    )


def google(asked: Asked) -> bytes:
    if answered(asked):
        parts: list[dict[str, Any]] = [{"text": ANSWER}]
    else:
        call = {"functionCall": {"name": "echo", "args": ARGUMENTS}, "thoughtSignature": SIGNATURE}
        parts = [{"text": THOUGHT, "thought": True}, call]
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "totalTokenCount": 107,
    }
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    return _events(
        {"candidates": [candidate], "modelVersion": "gemini-test"},
        {
            "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
            "modelVersion": "gemini-test",
        },
    )


def ollama(asked: Asked) -> bytes:
    common = {"model": "qwen3", "created_at": "2026-12-01T00:00:00Z"}
    if answered(asked):
        messages: list[dict[str, Any]] = [{"role": "assistant", "content": ANSWER}]
    else:
        call = {"function": {"name": "echo", "arguments": ARGUMENTS}}
        messages = [
            {"role": "assistant", "content": "", "thinking": THOUGHT},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
    lines: list[dict[str, Any]] = [{**common, "message": message, "done": False} for message in messages]
    lines.append(
        {
            **common,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 100,
            "eval_count": 7,
        }
    )
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


def answered(asked: Asked) -> bool:
    """Whether the request holds the tool's result."""
    return "echo 你好" in asked.text
