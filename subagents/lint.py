"""Advice about the sentence by which a lead chooses a subagent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from subagents.notes import Note, note

if TYPE_CHECKING:
    from subagents.catalogue import Catalogue, Entry

_SHORTEST: Final = 20  # characters; a CJK one says as much as two or three others
_WIDE: Final = re.compile("[\u2e80-\u9fff\uac00-\ud7af]")
_NO_VERB: Final = frozenset(
    {
        *("a", "an", "the", "my", "our", "this", "your", "very", "good", "great"),
        *("agent", "assistant", "bot", "expert", "helper", "specialist", "subagent", "tool"),
    }
)
_ALIKE: Final = 0.8  # of the words that two descriptions have together


def description_notes(entry: Entry, catalogue: Catalogue) -> tuple[Note, ...]:
    """Return what could be better about an entry's description: too short, no verb in front, nearly another's.

    Source: product.md §2, field `description`.
    """
    description = entry.definition.description.strip()
    if not description:
        return ()
    found = []
    if len(description) + 2 * len(_WIDE.findall(description)) < _SHORTEST:
        found.append(note("description_short"))
    words = re.findall(r"\w+", description.casefold())
    if words and words[0] in _NO_VERB:
        found.append(note("description_no_verb", word=description.split()[0]))
    twin = _twin(entry, catalogue)
    if twin is not None:
        found.append(note("description_alike", name=twin.name))
    return tuple(found)


def _twin(entry: Entry, catalogue: Catalogue) -> Entry | None:
    own = _features(entry.definition.description)
    for other in catalogue.runnable.values():
        if other.name == entry.name:
            continue
        theirs = _features(other.definition.description)
        if own and theirs and len(own & theirs) / len(own | theirs) >= _ALIKE:
            return other
    return None


def _features(description: str) -> frozenset[str]:
    """Words; of scripts that put no space between words, pairs of characters."""
    text = description.casefold()
    wide = "".join(_WIDE.findall(text))
    return frozenset(re.findall(r"[^\W\u2e80-\u9fff]+", text)) | {wide[at : at + 2] for at in range(len(wide) - 1)}
