"""What a subagent is: one definition, as its author wrote it, before any override."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from engine.config.schema import TokenBudgetConfig

INHERIT: Final = "inherit"  # as `model`: the lead's model

NAME_PATTERN: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Source(StrEnum):
    """Where a definition comes from. Declaration order is precedence: the earlier source wins a name."""

    BUILTIN = "builtin"
    CONFIG = "config"
    MANAGED = "managed"
    GRAPH = "graph"  # of langgraph.json
    REMOTE = "remote"  # called over the Agent Protocol, never delegated to


PRECEDENCE: Final = {source: rank for rank, source in enumerate(Source)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One subagent. None in a limit means "not said here"; None and () in a list are two different things.

    Source of the fields and their rules: product.md §2.
    """

    name: str
    source: Source
    description: str  # read by the lead's model to choose
    system_prompt: str  # never a template: braces, percent signs and tags stay as they are
    display_name: str = ""
    model: str = INHERIT
    tools: tuple[str, ...] | None = None  # None: every tool of the lead; (): none
    disallowed_tools: tuple[str, ...] = ()  # besides those that no subagent ever gets
    skills: tuple[str, ...] | None = None  # None: every enabled skill; (): none
    max_turns: int | None = None  # model calls
    timeout_seconds: int | None = None
    token_budget: TokenBudgetConfig | None = None
    enabled: bool = True
    version: str | None = None  # managed only, opaque: another text after each change
    updated_at: datetime | None = None  # managed only

    @property
    def title(self) -> str:
        return self.display_name or self.name


def row_key(source: Source, name: str) -> str:
    """Return the address of a row, made of `A-Z a-z 0-9 _ -` only, unique per (source, name).

    The admin skin builds JavaScript names from it, so a name that a broken file gives to an entry
    is replaced by a digest; the double hyphen keeps digests apart from names.
    """
    if _PLAIN_NAME.fullmatch(name) and not name.startswith("-"):
        return f"{source.value}-{name}"
    return f"{source.value}--{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
