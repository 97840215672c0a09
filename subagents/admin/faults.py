"""What is wrong with a field, in the reader's language. In English the sentences are those of the API and the files."""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext

from subagents.notes import gettext_noop

_SENTENCES: Final = (
    gettext_noop("this field is required"),
    gettext_noop("a name must not be empty"),
    gettext_noop("a name has at most %(most)s characters"),
    gettext_noop("a name must not start or end with a hyphen"),
    gettext_noop("a name may hold only the letters a-z, digits and hyphens"),
    gettext_noop("expected a name, got %(got)s"),
    gettext_noop("expected text in quotes, got %(got)s"),
    gettext_noop("expected text, got %(got)s"),
    gettext_noop("expected text of 1 to %(most)s characters, got %(got)s"),
    gettext_noop("expected text of at most %(most)s characters, not of %(length)s"),
    gettext_noop("a name has 1 to %(most)s characters"),
    gettext_noop("a name must not hold control characters or line breaks"),
    gettext_noop("this name is reserved for the default lead"),
    gettext_noop("expected a positive integer up to %(most)s, got %(got)s"),
    gettext_noop("expected a number above %(least)s and up to %(most)s, got %(got)s"),
    gettext_noop("expected true or false, got %(got)s"),
    gettext_noop("expected at most %(most)s names, got %(got)s"),
    gettext_noop("expected a list of names or null, got %(got)s"),
    gettext_noop("expected an object or null, got %(got)s"),
    gettext_noop("holds a NUL character or half of a surrogate pair, which cannot be stored"),
)


def _pattern(sentence: str) -> re.Pattern[str]:
    pieces = re.split(r"%\((\w+)\)s", sentence)
    return re.compile(
        "".join(f"(?P<{piece}>.+)" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces)), re.DOTALL
    )


_PATTERNS: Final = tuple((_pattern(sentence), sentence) for sentence in _SENTENCES)


def in_words(sentence: str) -> str:
    """Return the sentence of a fault translated; one that is not known here stays as it is."""
    for pattern, known in _PATTERNS:
        found = pattern.fullmatch(sentence)
        if found:
            return gettext(known) % found.groupdict()
    return sentence
