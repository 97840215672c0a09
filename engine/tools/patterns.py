"""Path patterns with `*`, `?`, `[…]` in a name and `**` for any number of folders."""

from __future__ import annotations

import fnmatch
import functools
import re
from typing import Final

_ANY_FOLDERS: Final = "**"
MAX_SEGMENTS: Final = 40


class PathPattern:
    """A compiled pattern; without `anchored`, one of a single part is compared with the last name."""

    def __init__(self, pattern: str, *, anchored: bool = True) -> None:
        """Raises ValueError for a pattern of more than 40 segments or without any."""
        segments = [segment for segment in pattern.split("/") if segment not in ("", ".")]
        if not segments or len(segments) > MAX_SEGMENTS:
            raise ValueError(f"a pattern has 1 to {MAX_SEGMENTS} parts between slashes")
        if not anchored and len(segments) == 1:
            segments = [_ANY_FOLDERS, *segments]
        self._segments = [None if segment == _ANY_FOLDERS else _compile(segment) for segment in segments]

    def matches(self, path: str) -> bool:
        """Whether `path`, relative and with slashes, is what the pattern describes."""
        # The positions in the pattern that the names so far can have led to: never more than
        # there are segments, so no pattern can make the comparison grow out of hand.
        reached = self._pass_folders({0})
        for name in path.split("/"):
            reached = self._pass_folders(self._step(reached, name))
        return len(self._segments) in reached

    def _step(self, reached: set[int], name: str) -> set[int]:
        following = set()
        for position in reached:
            if position == len(self._segments):
                continue
            segment = self._segments[position]
            if segment is None:
                following.add(position)
            elif segment.match(name):
                following.add(position + 1)
        return following

    def _pass_folders(self, reached: set[int]) -> set[int]:
        for position in sorted(reached):
            current = position
            while current < len(self._segments) and self._segments[current] is None:
                current += 1
                reached.add(current)
        return reached


@functools.lru_cache(maxsize=256)
def _compile(segment: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(segment))


def as_relative(pattern: str, root: str) -> str:
    """Return a pattern as seen from the workspace: one written absolute below `root` is taken as such.

    Raises ValueError for one that leads out of the workspace.
    """
    inner = pattern.removeprefix(root) if pattern == root or pattern.startswith(root + "/") else pattern
    if (inner is pattern and pattern.startswith("/")) or ".." in pattern.split("/"):
        raise ValueError(f"the pattern leads out of the workspace; write it relative or below {root}")
    return inner
