from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runs.web.markdown import to_html
from runs.web.streaming import StreamedReply

ANSWER = "First.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n\ny = 2\n```\n\n- one\n\n- two\n\nLast *words*."
pieces = st.lists(
    st.sampled_from(
        [
            "word ",
            "\n",
            "\n\n",
            "\r\n",
            "- item\n",
            "# head\n",
            "```\n",
            "| a |\n|---|\n",
            "**b**",
            "> q\n",
            "1. x\n",
            "    ",
        ]
    ),
    max_size=25,
)


def streamed(chunks: list[str]) -> tuple[list[str], str]:
    """What a page holds after all patches: the settled blocks and the open one."""
    blocks: list[str] = []
    reply, open_html = StreamedReply(), ""
    for chunk in chunks:
        reply.push(chunk)
        patch = reply.patch()
        blocks[patch.first_block :] = patch.blocks
        open_html = patch.open_html
    return blocks, open_html


def test_a_reply_written_letter_by_letter_ends_up_as_the_whole_rendered_at_once():
    blocks, open_html = streamed(list(ANSWER))
    assert "".join([*blocks, open_html]) == to_html(ANSWER)


def test_settled_blocks_are_handed_out_once():
    reply = StreamedReply()
    reply.push("one\n\ntwo\n")
    assert (reply.patch().blocks, reply.settled) == ((to_html("one\n\n"),), 1)
    reply.push("more")
    patch = reply.patch()
    assert (patch.first_block, patch.blocks) == (1, ())
    assert patch.open_html == to_html("two\nmore")


def test_a_table_keeps_its_body_while_its_next_row_is_typed():
    blocks, open_html = streamed(["| a |\n|---|\n", "| 1 |\n", "| ", "2 |"])
    assert blocks == []
    assert open_html.count("<tr>") == 3


def test_line_ends_that_arrive_in_two_halves_are_one_line_end():
    assert streamed(["one\r", "\n\r\ntwo\r\n"]) == ([to_html("one\n\n")], to_html("two\n"))


@given(pieces)
def test_settled_blocks_never_depend_on_how_the_text_was_cut(chunks):
    blocks, open_html = streamed(chunks)
    whole_blocks, whole_open = streamed(["".join(chunks)]) if chunks else ([], "")
    assert "".join([*blocks, open_html]) == "".join([*whole_blocks, whole_open])


def test_an_expensive_block_is_shown_less_often():
    reply = StreamedReply()
    reply.push("```python\n" + "x = [1, 2, 3]\n" * 1400)
    reply.patch()
    assert reply.interval_seconds > 0.2
