"""What a page may send, checked for shape. What it means is for the services to judge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from engine.text import clean
from runs.errors import BadInput
from runs.options import clean_options
from runs.services import MAX_TEXT_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BODY_BYTES: Final = 4 << 20  # 200,000 characters fit even when each is escaped as two \uXXXX
MAX_TITLE_CHARACTERS: Final = 200


class BodyTooLarge(Exception):
    """The request's body is longer than any message could be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    text: str
    options: Mapping[str, Any]


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a request's body. Raises BadInput for anything else."""
    try:
        # Not the stricter parser: half an emoji, as a browser may send it, is cleaned later and not a fault.
        content = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise BadInput("", _("The request is not valid JSON.")) from None
    if not isinstance(content, dict):
        raise BadInput("", _("The request must be a JSON object."))
    return content


def read_message(body: bytes) -> NewMessage:
    """The message in a request's body: `text` in 1 to 200,000 characters, `options` an object. Raises BadInput."""
    content = read_object(body)
    text, options = _text(content), content.get("options", {})
    if not isinstance(options, dict):
        raise BadInput("options", _("This must be an object."))
    # Judged here too, so that a first message that is refused leaves no empty thread behind. Handed on as they came:
    # what is clamped is noted where the run is made.
    clean_options(options)
    return NewMessage(text=text, options=options)


def read_text(body: bytes) -> str:
    """The `text` in a request's body, in 1 to 200,000 characters. Raises BadInput."""
    return _text(read_object(body))


def _text(content: Mapping[str, Any]) -> str:
    text = content.get("text")
    if not isinstance(text, str):
        raise BadInput("text", _("Write a message."))
    if not text.strip():
        raise BadInput("text", _("The message is empty."))
    if len(text) > MAX_TEXT_LENGTH:
        raise BadInput(
            "text",
            _("The message has %(count)s characters; %(limit)s are allowed.")
            % {"count": f"{len(text):,}", "limit": f"{MAX_TEXT_LENGTH:,}"},
        )
    return text


def read_title(body: bytes) -> str:
    """The new title of a thread in 1 to 200 characters, on one line. Raises BadInput."""
    title = read_object(body).get("title")
    if not isinstance(title, str) or not (line := " ".join(clean(title).split())):
        raise BadInput("title", _("Write a title."))
    if len(line) > MAX_TITLE_CHARACTERS:
        raise BadInput("title", _("A title has at most %(limit)s characters.") % {"limit": MAX_TITLE_CHARACTERS})
    return line
