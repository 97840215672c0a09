"""A reply that is being written, as blocks of HTML: settled blocks are rendered once, only the open one again."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from runs.web.markdown import settled_lines, to_html

FRAME_SECONDS: Final = 0.2  # the open block is shown again at most this often
RENDER_SHARE: Final = 0.05  # and never costs more than this part of one core

# A carriage return at the very end may be half of a pair.
_OTHER_LINE_END: Final = re.compile(r"\r\n|\r(?!\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPatch:
    """`blocks` stand at `first_block` and after; `open_html` follows them and is replaced by the next patch."""

    first_block: int
    blocks: tuple[str, ...]
    open_html: str


@dataclass(slots=True)
class StreamedReply:
    """The text of one message so far. Text is pushed as it comes; a patch is taken when it is time to show it."""

    settled: int = 0  # blocks handed out for good
    open_text: str = ""
    interval_seconds: float = FRAME_SECONDS
    _waiting: list[str] = field(default_factory=list)

    def push(self, text: str) -> None:
        self._waiting.append(text)

    def patch(self) -> ReplyPatch:
        started = time.perf_counter()
        self.open_text = _OTHER_LINE_END.sub("\n", self.open_text + "".join(self._waiting))
        self._waiting.clear()
        first_block, blocks = self.settled, self._settle()
        open_html = to_html(self.open_text)
        self.interval_seconds = max(FRAME_SECONDS, (time.perf_counter() - started) / RENDER_SHARE)
        return ReplyPatch(first_block=first_block, blocks=blocks, open_html=open_html)

    def _settle(self) -> tuple[str, ...]:
        starts = settled_lines(self.open_text)
        if not starts:
            return ()
        lines = self.open_text.split("\n")  # as the parser counts; splitlines knows line ends that Markdown does not
        edges = [0, *starts]
        blocks = tuple(to_html("\n".join(lines[a:b])) for a, b in pairwise(edges))
        self.open_text = "\n".join(lines[starts[-1] :])
        self.settled += len(blocks)
        return blocks
