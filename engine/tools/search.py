"""Tools that find files by name and lines by pattern."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import regex
from langchain.tools import ToolRuntime
from pydantic import Field

from engine.sandbox.errors import WorkspaceError
from engine.sandbox.workspace import VISIBLE_ROOT
from engine.text import clean, shorten
from engine.tools.errors import ToolFailed
from engine.tools.making import agent_tool, in_thread
from engine.tools.patterns import PathPattern, as_relative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.workspace import Workspace

MAX_FOUND: Final = 500
MAX_MATCHES: Final = 200
MAX_LINE_CHARACTERS: Final = 300
MAX_SEARCHED_BYTES: Final = 4 << 20
SEARCH_SECONDS: Final = 10.0
_MAX_PATTERN_CHARACTERS: Final = 1_000

Runtime = ToolRuntime[Any, Any]  # its context is a ToolContext; a Protocol is no type to validate with


@agent_tool
async def glob(
    runtime: Runtime,
    pattern: Annotated[str, Field(description="Like *.md, src/**/*.py or **/notes-?.txt.")],
) -> str:
    """Find files of the workspace by path pattern; ** stands for any number of folders."""
    compiled = _path_pattern(pattern, anchored=True)
    found, complete = await in_thread(_find, runtime.context.workspace, compiled, path=_shown(pattern))
    notes = _notes(cut=len(found) > MAX_FOUND, limit=f"{MAX_FOUND} files", complete=complete)
    lines = [clean(path) for path in found[:MAX_FOUND]]
    return "\n".join([*(lines or ["No file matches."]), *notes])


@agent_tool
async def grep(
    runtime: Runtime,
    pattern: Annotated[str, Field(description="A regular expression; (?i) at its start ignores case.")],
    path: Annotated[str, Field(description="The folder or file to search.")] = ".",
    glob: Annotated[str | None, Field(description="Search only files that match, like *.py.")] = None,
) -> str:
    """Search text files of the workspace line by line. Answers path:line:text for each line that matches."""
    search = LineSearch(
        pattern=_regular_expression(pattern),
        only=_path_pattern(glob, anchored=False) if glob else None,
        deadline=time.monotonic() + SEARCH_SECONDS,
    )
    await in_thread(search.run, runtime.context.workspace, path, path=_shown(path))
    notes = _notes(cut=len(search.lines) > MAX_MATCHES, limit=f"{MAX_MATCHES} lines", complete=search.complete)
    if search.skipped:
        notes.append(f"[{search.skipped} binary, large or unreadable files were not searched]")
    return "\n".join([*(search.lines[:MAX_MATCHES] or ["No line matches."]), *notes])


@dataclass(slots=True, kw_only=True)
class LineSearch:
    """One grep: what it looks for, how long it may (a time.monotonic() moment), and what it has found.

    `complete` is false when the time was up first; one line more than MAX_MATCHES means that there are more.
    """

    pattern: regex.Pattern[str]
    only: PathPattern | None
    deadline: float
    lines: list[str] = field(default_factory=list)
    skipped: int = 0
    complete: bool = True

    def run(self, workspace: Workspace, path: str) -> None:
        try:
            for found in workspace.files(path, deadline=self.deadline):
                if self.only is None or self.only.matches(found.path):
                    self._search_file(workspace, found.path)
                if len(self.lines) > MAX_MATCHES:
                    return
        except TimeoutError:
            self.complete = False

    def _search_file(self, workspace: Workspace, path: str) -> None:
        try:
            content = workspace.read(path, limit_bytes=MAX_SEARCHED_BYTES)
        except (WorkspaceError, OSError):
            self.skipped += 1
            return
        if b"\x00" in content:
            self.skipped += 1
            return
        for line in self._matching_lines(path, content.decode("utf-8-sig", "replace")):
            self.lines.append(line)
            if len(self.lines) > MAX_MATCHES:
                return

    def _matching_lines(self, path: str, text: str) -> Iterator[str]:
        for number, line in enumerate(text.splitlines(), start=1):
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            # Within one line a pattern may try for ever; this engine stops itself, and lets
            # other threads run while it tries.
            if self.pattern.search(line, timeout=left, concurrent=True):
                yield f"{path}:{number}:{shorten(clean(line), MAX_LINE_CHARACTERS)}"


def _find(workspace: Workspace, pattern: PathPattern) -> tuple[list[str], bool]:
    found: list[str] = []
    try:
        for file in workspace.files(deadline=time.monotonic() + SEARCH_SECONDS):
            if pattern.matches(file.path):
                found.append(file.path)
            if len(found) > MAX_FOUND:
                break
    except TimeoutError:
        return sorted(found), False
    return sorted(found), True


def _path_pattern(pattern: str, *, anchored: bool) -> PathPattern:
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        raise ToolFailed(f"The pattern is longer than {_MAX_PATTERN_CHARACTERS} characters.")
    try:
        return PathPattern(as_relative(pattern, VISIBLE_ROOT), anchored=anchored)
    except ValueError as error:
        raise ToolFailed(f'"{_shown(pattern)}" cannot be used: {error}.') from error


def _regular_expression(pattern: str) -> regex.Pattern[str]:
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        raise ToolFailed(f"The pattern is longer than {_MAX_PATTERN_CHARACTERS} characters.")
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ToolFailed(f'"{_shown(pattern)}" is not a regular expression: {error}.') from error
    except (RecursionError, OverflowError) as error:
        raise ToolFailed("The pattern is nested too deeply.") from error


def _notes(*, cut: bool, limit: str, complete: bool) -> list[str]:
    notes = [f"[cut after {limit}; narrow the search]"] if cut else []
    if not complete:
        notes.append(f"[stopped after {SEARCH_SECONDS:g} s; the search is not complete]")
    return notes


def _shown(text: str) -> str:
    return shorten(clean(text), 200)
