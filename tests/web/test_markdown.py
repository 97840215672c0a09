from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.web.markdown import MAX_MARKDOWN_CHARACTERS, settled_lines, to_html

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "![x](https://tracker.example/pixel.png)",
    "![x](javascript:alert(1))",
    "<svg/onload=alert(1)>",
    "<iframe src=//evil.example></iframe>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<style>*{display:none}</style>",
    "<form action=/logout/><button>x</button></form>",
    '[x](https://a.example "onmouseover=alert(1)")',
    '[x](https://a.example/" onclick="alert(1))',
    "```html\n<script>alert(1)</script>\n```",
    '```x" onload="alert(1)\ncode\n```',
    "`<script>alert(1)</script>`",
    "| <script>alert(1)</script> | b |\n|---|---|\n| <b onclick=x> | 2 |",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "[a]: javascript:alert(1)\n\n[a]",
    "<javascript:alert(1)>",
    "<div\x00 onclick=alert(1)>x</div>",
    "[x](/admin/auth/user/1/delete/)",
    "[x](//evil.example)",
    '<th style="text-align:left" onclick=x>',
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
]
ALLOWED_TAGS = {
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
}
ALLOWED_ATTRIBUTES = {"href", "title", "target", "rel", "class", "start"}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = Reader()
    reader.feed(to_html(text))
    return reader.elements


def assert_harmless(text: str) -> None:
    for tag, attributes in elements(text):
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= ALLOWED_ATTRIBUTES
        if tag == "a" and "href" in attributes:
            assert (attributes["href"] or "").lower().startswith(("http://", "https://", "mailto:"))
            assert attributes["rel"] == "noopener nofollow ugc"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_gives_no_element_or_attribute_outside_the_allow_list(text):
    assert_harmless(text)


@given(st.lists(st.sampled_from([*HOSTILE, "a\n\n", "- ", "> ", "```", "|", "**", "\n"]), max_size=6).map("".join))
def test_no_mixture_of_hostile_pieces_escapes_the_allow_list(text):
    assert_harmless(text)


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_can_be_rendered(text):
    assert_harmless(text)


def test_nul_bytes_and_lone_surrogates_are_shown_as_replacement_characters():
    assert "a\ufffdb\ufffdc" in to_html("a\x00b\ud800c")


def test_tables_strikethrough_and_bare_links_work():
    html = to_html("| a | b |\n|---|--:|\n| ~~1~~ | https://x.example |")
    assert "<s>1</s>" in html
    assert '<td class="ta-right"><a href="https://x.example"' in html


def test_code_is_coloured_by_classes_and_an_unknown_language_stays_plain():
    assert '<span class="hl-k">def</span>' in to_html("```python\ndef f(): ...\n```")
    assert "<span" not in to_html("```no-such-language\ndef f(): ...\n```")


def test_images_become_links_because_loading_one_tells_a_stranger_who_reads():
    assert "<img" not in to_html("![chart](https://x.example/a.png)")


def test_relative_links_stay_text_because_a_model_has_no_business_inside_the_site():
    assert elements("[x](/admin/)") == [("p", {})]


def test_a_text_beyond_the_limit_is_shown_as_it_was_written():
    html = to_html("**x** <b>" + "y" * MAX_MARKDOWN_CHARACTERS)
    assert html.startswith('<pre class="plain">**x** &lt;b&gt;yyy')


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\n\ntwo\n", [2]),
        ("one\n\ntwo", []),  # "two" may yet become anything, and nothing complete follows "one"
        ("text\n#", []),  # "#" may become "#tag", which belongs to the paragraph
        ("text\n# head\n", [1]),
        ("- a\n\n- b\n\nend\n", [4]),
        ("```\na\n\nb\n", []),  # the fence is still open
        ("| a |\n|---|\n| 1 |\n| 2", []),
        ("", []),
    ],
)
def test_a_block_is_settled_once_a_complete_line_begins_another(text, lines):
    assert settled_lines(text) == lines
