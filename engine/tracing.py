"""LangSmith's spans, which LangChain puts around every middleware hook whether or not anything is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import langsmith
from langsmith.utils import tracing_is_enabled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import Context


def keep_spans_cheap() -> None:
    """Let a span that nobody records begin and end in place. By default each takes two hops to another thread."""
    langsmith.set_runtime_overrides(aio_to_thread=_in_place_unless_traced)


async def _in_place_unless_traced(
    by_default: Callable[..., Awaitable[Any]], context: Context, work: Callable[..., Any], /, *args: Any, **named: Any
) -> Any:
    if tracing_is_enabled():  # then there is something to prepare and to send
        return await by_default(context, work, *args, **named)
    return context.run(work, *args, **named)
