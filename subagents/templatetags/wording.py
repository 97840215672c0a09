"""`{{ problem|say }}`: a reason of engine or catalogue in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template

from engine.config.errors import Problem
from subagents import wording

if TYPE_CHECKING:
    from subagents.notes import Note

register = template.Library()


@register.filter
def say(said: Problem | Note | str) -> str:
    """Say a note, a reason, or a problem behind its place in the file."""
    return wording.say(said.reason if isinstance(said, Problem) else said)
