"""Tokens: what a provider reported, summed; and an honest estimate where it reported nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from engine.ports import Usage

CHARACTERS_PER_TOKEN: Final = 4
OVERHEAD_TOKENS: Final = 4  # of one message: role and separators
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")  # about one token each
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("input_tokens", "prompt_tokens", "prompt_token_count", "prompt_eval_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidates_token_count", "eval_count"),
}


def usage_of(message: BaseMessage) -> Usage | None:
    """The usage a reply carries, under whichever name its provider uses; None when it carries none.

    Figures that are no non-negative whole numbers count as not reported.
    """
    reported = getattr(message, "usage_metadata", None) or _raw_usage(message.response_metadata)
    if not isinstance(reported, Mapping):
        return None
    counts = {field: _first_count(reported, names) for field, names in _NAMES.items()}
    if all(count is None for count in counts.values()):
        return None
    details = reported.get("input_token_details")
    cached = _count(details.get("cache_read")) if isinstance(details, Mapping) else None
    return Usage(**counts, cached_tokens=cached, estimated=bool(message.response_metadata.get("usage_estimated")))


def sum_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Add field by field; unknown ones are left out, and None comes of nothing but unknown ones."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    return Usage(
        input_tokens=_sum(usage.input_tokens for usage in known),
        output_tokens=_sum(usage.output_tokens for usage in known),
        cached_tokens=_sum(usage.cached_tokens for usage in known),
        estimated=any(usage.estimated for usage in known),
    )


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is: one for each CJK character, one for four others."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // CHARACTERS_PER_TOKEN)


def estimate_usage(request: Iterable[BaseMessage], reply: AIMessage) -> Usage:
    """The usage of one call whose provider reported none, marked as an estimate."""
    return Usage(
        input_tokens=estimate_request(request),
        output_tokens=_message_tokens(reply),
        estimated=True,
    )


def estimate_request(messages: Iterable[BaseMessage]) -> int:
    """About how many tokens these messages are in a request."""
    return sum(_message_tokens(message) for message in messages)


def _message_tokens(message: BaseMessage) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    called = "".join(f"{call['name']}{call['args']}" for call in calls)
    return OVERHEAD_TOKENS + estimate_tokens(message.text) + estimate_tokens(called)


def _raw_usage(response_metadata: Mapping[str, Any]) -> object:
    for name in ("token_usage", "usage", "usage_metadata"):
        if response_metadata.get(name):
            return response_metadata[name]
    return response_metadata


def _first_count(reported: Mapping[str, Any], names: Iterable[str]) -> int | None:
    return next((count for name in names if (count := _count(reported.get(name))) is not None), None)


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 15:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
