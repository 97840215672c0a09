"""Markdown of models and subagents as HTML that is safe to put into a page.

Three stages, in this order: markdown-it (raw HTML is text), Pygments (classes only), nh3 last, so that whatever
the first two let through still has to pass one allow list.
"""

from __future__ import annotations

import hashlib
import html
import re
import threading
from collections import OrderedDict
from typing import Final

import nh3
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from engine.text import clean

MAX_MARKDOWN_CHARACTERS: Final = 200_000
MAX_COLOURED_CHARACTERS: Final = 20_000
MAX_CACHED_CHARACTERS: Final = 4_000_000

_CLASS_PREFIX: Final = "hl-"
_TAGS: Final = frozenset(
    [
        "p",
        "br",
        "hr",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "span",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "a",
    ]
)
_ATTRIBUTES: Final = {"a": {"href", "title", "target"}, "ol": {"start"}}
_CELL_CLASSES: Final = {"ta-left", "ta-center", "ta-right"}
_CLASSES: Final = {
    "span": {f"{_CLASS_PREFIX}{name}" for name in STANDARD_TYPES.values() if name},
    "th": _CELL_CLASSES,
    "td": _CELL_CLASSES,
    "pre": {"plain"},
}
_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_LINK: Final = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_ALIGNED: Final = re.compile(r'<(t[hd]) style="text-align:(left|center|right)">')


def to_html(text: str) -> str:
    """Render Markdown to sanitised HTML; the same text is rendered once and then remembered.

    Takes text of any length and content. Beyond 200,000 characters it is shown as it was written, because
    parsing would hold up everybody else's page.
    """
    return _CACHE.get(clean(text))


def settled_lines(text: str) -> list[int]:
    """Return the line numbers where the blocks of `text` end that later text can no longer change.

    Counts only lines that are complete: the last one is still being typed, and "#" may yet become "#tag".
    A block is settled once another block has begun after it. The numbers grow; the last block is never among them.
    """
    complete = text[: text.rfind("\n") + 1]
    starts = [
        token.map[0] for token in _BLOCKS.parse(complete) if token.level == 0 and token.nesting >= 0 and token.map
    ]
    return starts[1:]


def _highlight(code: str, language: str, _attributes: str) -> str:
    if not language or len(code) > MAX_COLOURED_CHARACTERS:
        return ""
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, _FORMATTER))


def _is_link(url: str) -> bool:
    return _LINK.match(url) is not None


def _only_absolute_links(tag: str, attribute: str, value: str) -> str | None:
    return None if (tag, attribute) == ("a", "href") and not _is_link(value) else value


def _render(text: str) -> str:
    if len(text) > MAX_MARKDOWN_CHARACTERS:
        return f'<pre class="plain">{html.escape(text)}</pre>'
    # Alignment comes as a style, which the allow list does not have.
    marked = _ALIGNED.sub(r'<\1 class="ta-\2">', _PAGE.render(text))
    return nh3.clean(
        marked,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=_only_absolute_links,
        allowed_classes=_CLASSES,
        url_schemes=set(_SCHEMES),
        link_rel="noopener nofollow ugc",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _page_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "highlight": _highlight})
    parser.enable(["table", "strikethrough", "linkify"]).disable(["image", "html_block", "html_inline"])
    parser.validateLink = _is_link  # type: ignore[method-assign]
    return parser


def _block_parser() -> MarkdownIt:
    """Finds where blocks begin, without paying for what stands in them."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("html_block")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


class _HtmlCache:
    """What was rendered lately, by the hash of the text. Bounded in characters; safe to use from threads."""

    def __init__(self, max_characters: int) -> None:
        self._pages: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()
        self._characters = 0
        self._max_characters = max_characters

    def get(self, text: str) -> str:
        key = hashlib.sha256(text.encode()).digest()
        with self._lock:
            if (page := self._pages.get(key)) is not None:
                self._pages.move_to_end(key)
                return page
        page = _render(text)
        with self._lock:
            if key not in self._pages:
                self._pages[key] = page
                self._characters += len(page)
            while self._characters > self._max_characters and self._pages:
                self._characters -= len(self._pages.popitem(last=False)[1])
        return page


_FORMATTER: Final = HtmlFormatter(nowrap=True, classprefix=_CLASS_PREFIX)
_PAGE: Final = _page_parser()
_BLOCKS: Final = _block_parser()
_CACHE: Final = _HtmlCache(MAX_CACHED_CHARACTERS)
