"""From the name a model wrote to the one permitted subagent it can mean."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.graphs.file import spoken
from engine.text import clean, shorten

if TYPE_CHECKING:
    from collections.abc import Collection

_WRAPPING: Final = " \t\r\n'\"`‘’“”「」"
_ONE_ELEMENT: Final = re.compile(r"\[([^\[\],]*)\]")
_LONGEST_NAME: Final = 200  # of what a model wrote; no permitted name comes near
_SHOWN_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nobody was called: a text for the model that names permitted subagents only. Not translated."""

    text: str


def match(written: object, permitted: Collection[str]) -> str | Refusal:
    """Return the permitted name that `written` means, or a refusal that lists the permitted names.

    Tolerates case, surrounding space, quotes or backticks, `_` for `-`, and a list of one element, also as
    JSON or Python text. A name outside `permitted` is refused in the same words whether it exists or not.
    Source: product.md §2.4.
    """
    name = _canonical(_single(written))
    meant = [one for one in permitted if spoken(one) == name]
    if len(meant) == 1:
        return meant[0]
    return refuse(written, permitted)


def refuse(written: object, permitted: Collection[str], *, because: str = "") -> Refusal:
    """Say that nothing was started, and who may be called instead."""
    if not permitted:
        choice = "No subagent is permitted in this run: do the work yourself."
    else:
        choice = f"Permitted subagents: {', '.join(sorted(permitted))}."
    asked = f"“{shorten(clean(written.strip()), _SHOWN_NAME)}”" if isinstance(written, str) else "that name"
    why = because or f"{asked} is not a subagent that this run may call."
    return Refusal(f"Nothing was started: {why} {choice}")


def _single(written: object) -> object:
    if isinstance(written, str) and len(written) <= _LONGEST_NAME:
        # Models write lists as JSON and as Python; of either kind one element between the brackets is enough.
        bracketed = _ONE_ELEMENT.fullmatch(written.strip(_WRAPPING))
        return bracketed[1] if bracketed else written
    if isinstance(written, list | tuple):
        return written[0] if len(written) == 1 else None
    return written


def _canonical(written: object) -> str | None:
    if not isinstance(written, str) or len(written) > _LONGEST_NAME:
        return None
    return unicodedata.normalize("NFC", written).strip(_WRAPPING).lower().replace("_", "-")
