"""The rules for names that the file gives to things."""

from __future__ import annotations

import re
import unicodedata

from engine.reasons import Reason
from engine.reasons import gettext_noop as _

NAME_MAX_LENGTH = 64

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]+")


def normalise_name(text: str) -> str:
    """Return the one spelling under which a subagent is known: NFC, trimmed, lower-case.

    The result has 1–64 characters of `a-z`, `0-9` and `-` and neither starts nor ends with
    a hyphen. Raises ValueError, with a sentence for the person who wrote the name, otherwise.
    Source: product.md §2, field `name`.
    """
    # The length is looked at first: normalising a megabyte to refuse it would be wasted work.
    if len(text) > 4 * NAME_MAX_LENGTH:
        raise ValueError(Reason(_("a name has at most %(most)s characters"), most=NAME_MAX_LENGTH))
    name = unicodedata.normalize("NFC", text).strip().lower()
    if not name:
        raise ValueError(Reason(_("a name must not be empty")))
    if len(name) > NAME_MAX_LENGTH:
        raise ValueError(Reason(_("a name has at most %(most)s characters"), most=NAME_MAX_LENGTH))
    if name.startswith("-") or name.endswith("-"):
        raise ValueError(Reason(_("a name must not start or end with a hyphen")))
    if not _NAME.fullmatch(name):
        raise ValueError(Reason(_("a name may hold only the letters a-z, digits and hyphens")))
    return name


def label_name(text: str) -> str:
    """Return a free name (model, ACP agent) trimmed: 1–64 printable characters. Raises ValueError."""
    name = text.strip()
    if not 0 < len(name) <= NAME_MAX_LENGTH:
        raise ValueError(Reason(_("a name has 1 to %(most)s characters"), most=NAME_MAX_LENGTH))
    if not name.isprintable():
        raise ValueError(Reason(_("a name must not hold control characters or line breaks")))
    return name


def server_name(text: str) -> str:
    """Return an MCP server's name; providers accept only ASCII letters, digits, `_` and `-` in tool names.

    Raises ValueError.
    """
    name = label_name(text)
    if not _SERVER_NAME.fullmatch(name):
        raise ValueError(Reason(_("a server's name may hold only ASCII letters, digits, underscores and hyphens")))
    return name
