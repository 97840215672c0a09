"""How a reply ended, by what its provider said about it. Pure; reads stored replies as well as fresh ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import ModelFault
from engine.reasons import Reason
from engine.reasons import gettext_noop as _
from engine.text import clean, shorten

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

MAX_QUOTE_CHARACTERS: Final = 300
_REASONS: Final = ("finish_reason", "stop_reason", "done_reason")
_CUT_BY_LENGTH: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
_STOPPED_FOR_SAFETY: Final = frozenset(
    {"content_filter", "refusal", "safety", "image_safety", "prohibited_content", "blocklist", "spii", "recitation"}
)


def says_something(reply: AIMessage) -> bool:
    return bool(reply.tool_calls or reply.invalid_tool_calls or str(reply.text).strip())


def was_cut(reply: AIMessage) -> bool:
    """Whether the reply reached the model's output limit before it was finished."""
    return not _CUT_BY_LENGTH.isdisjoint(_reasons(reply))


def refusal_of(reply: AIMessage) -> ModelFault | None:
    """Why the reply is no answer, when its model declined or its provider's safety filter stopped it."""
    words = _refusal_words(reply)
    if words:
        sentence = _("The model declined to answer: %(words)s")
        return ModelFault("model_refusal", Reason(sentence, words=shorten(words, MAX_QUOTE_CHARACTERS)))
    if not _STOPPED_FOR_SAFETY.isdisjoint(_reasons(reply)):
        sentence = _("The answer was stopped by the model server's safety filter.")
        return ModelFault("model_refusal", Reason(sentence))
    return None


def _reasons(reply: AIMessage) -> set[str]:
    return {str(reply.response_metadata.get(name, "")).lower() for name in _REASONS}


def _refusal_words(reply: AIMessage) -> str:
    """What OpenAI and its like keep beside an answer, or in a block of it."""
    blocks = reply.content if isinstance(reply.content, list) else ()
    said = [block.get("refusal") for block in blocks if isinstance(block, dict) and block.get("type") == "refusal"]
    found = [one for one in (reply.additional_kwargs.get("refusal"), *said) if isinstance(one, str)]
    return " ".join(clean(" ".join(found)).split())
