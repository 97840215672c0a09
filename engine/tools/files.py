"""Tools that list, read and change files of the thread's workspace."""

from __future__ import annotations

from typing import Annotated, Any, Final

from langchain.tools import ToolRuntime
from pydantic import Field

from engine.sandbox.workspace import VISIBLE_ROOT, Found
from engine.text import clean, shorten
from engine.tools.errors import ToolFailed
from engine.tools.making import Text, agent_tool, in_thread

MAX_LISTED: Final = 500
MAX_READ_CHARACTERS: Final = 50_000
MAX_WRITE_CHARACTERS: Final = 400_000
_BINARY_SAMPLE_BYTES: Final = 8_192
_MAX_TORN_SHARE: Final = 0.1

Runtime = ToolRuntime[Any, Any]  # its context is a ToolContext; a Protocol is no type to validate with
WorkspacePath = Annotated[
    str,
    Field(description=f"A path in the workspace, relative like notes/a.md or absolute below {VISIBLE_ROOT}."),
]


@agent_tool
async def ls(runtime: Runtime, path: WorkspacePath = ".") -> str:
    """List a folder of the workspace. Folders end with a slash; files show their size in bytes."""
    shown = _shown(path)
    found = await in_thread(runtime.context.workspace.listing, path, path=shown)
    if not found:
        return f"{shown} is empty."
    lines = [_line(entry) for entry in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        lines.append(f"[{len(found) - MAX_LISTED} more entries are not shown; list a folder below or use glob]")
    return "\n".join(lines)


@agent_tool
async def read_file(
    runtime: Runtime,
    path: WorkspacePath,
    start_line: Annotated[int | None, Field(description="First line to read, counted from 1.")] = None,
    end_line: Annotated[int | None, Field(description="Last line to read, included.")] = None,
) -> str:
    """Read a text file of the workspace. Long files are cut; read the rest with start_line and end_line."""
    shown = _shown(path)
    content = await in_thread(runtime.context.workspace.read, path, path=shown)
    text, note = _as_text(content, shown)
    if not text:
        return f"{shown} is empty."
    return _excerpt(text, start_line, end_line, shown) + note


@agent_tool
async def write_file(
    runtime: Runtime,
    path: WorkspacePath,
    content: Annotated[Text, Field(description="The whole text to write, or to add with append.")],
    append: Annotated[bool, Field(description="Add to the end of the file instead of replacing it.")] = False,
) -> str:
    """Write a text file in the workspace; missing folders are made. Replaces it unless append is true."""
    if len(content) > MAX_WRITE_CHARACTERS:
        raise ToolFailed(
            f"The content has {len(content)} characters, the limit is {MAX_WRITE_CHARACTERS} a call. "
            "Write it in several calls with append."
        )
    shown = _shown(path)
    workspace = runtime.context.workspace
    size_bytes = await in_thread(lambda: workspace.write(path, content.encode(), append=append), path=shown)
    verb = "Appended to" if append else "Wrote"
    return f"{verb} {shown}, which now has {size_bytes} bytes."


@agent_tool
async def str_replace(
    runtime: Runtime,
    path: WorkspacePath,
    old_str: Annotated[Text, Field(description="The exact text to replace, with its white space.")],
    new_str: Annotated[Text, Field(description="The text to put in its place; empty to delete.")],
    replace_all: Annotated[
        bool, Field(description="Replace every occurrence; without it old_str must occur exactly once.")
    ] = False,
) -> str:
    """Replace text in a file of the workspace; nothing changes when old_str is missing or ambiguous."""
    if len(new_str) > MAX_WRITE_CHARACTERS:
        raise ToolFailed(f"new_str has {len(new_str)} characters, the limit is {MAX_WRITE_CHARACTERS} a call.")
    if not old_str:
        raise ToolFailed("old_str is empty. Give the text to replace, or use write_file.")
    shown = _shown(path)
    old, new = old_str.encode(), new_str.encode()
    replaced = 0

    def change(before: bytes) -> bytes:
        nonlocal replaced
        replaced = before.count(old)
        _check_occurrences(replaced, before, shown, replace_all=replace_all)
        return before.replace(old, new)

    await in_thread(runtime.context.workspace.edit, path, change, path=shown)
    return f"Replaced {replaced} occurrence{'s' if replaced > 1 else ''} in {shown}."


def _check_occurrences(count: int, content: bytes, shown: str, *, replace_all: bool) -> None:
    if count == 0:
        hint = " The file ends its lines with \\r\\n." if b"\r\n" in content else ""
        raise ToolFailed(f"old_str does not occur in {shown}; read the file and copy the text exactly.{hint}")
    if count > 1 and not replace_all:
        raise ToolFailed(
            f"old_str occurs {count} times in {shown}. Add surrounding lines until it is unique, or set replace_all."
        )


def _excerpt(text: str, start_line: int | None, end_line: int | None, shown: str) -> str:
    """Return the wanted lines, as many as fit, and a last line that says where the rest is."""
    lines = text.splitlines(keepends=True)
    first = max(start_line or 1, 1)
    last = min(len(lines) if end_line is None else end_line, len(lines))
    if first > last:
        raise ToolFailed(f"{shown} has {len(lines)} lines; there is none from {first} to {end_line or 'its end'}.")
    wanted = "".join(lines[first - 1 : last])
    if len(wanted) <= MAX_READ_CHARACTERS:
        return wanted
    fitting = wanted[:MAX_READ_CHARACTERS].splitlines(keepends=True)
    whole = len(fitting) - 1
    if whole == 0:
        return shorten(lines[first - 1], MAX_READ_CHARACTERS) + (
            f"\n[line {first} of {len(lines)} is longer than can be shown]"
        )
    return "".join(fitting[:whole]) + f"[cut: lines {first}-{first + whole - 1} of {len(lines)}; go on with start_line]"


def _as_text(content: bytes, shown: str) -> tuple[str, str]:
    """Return a file as storable text and a note on what was lost. Raises ToolFailed for what is not text."""
    if b"\x00" in content[:_BINARY_SAMPLE_BYTES]:
        raise ToolFailed(f"{shown} is a binary file of {len(content)} bytes and cannot be shown.")
    text = content.decode("utf-8-sig", "replace")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        torn = text.count("\ufffd")
        if torn > len(text) * _MAX_TORN_SHARE:
            raise ToolFailed(
                f"{shown} is binary, or text in another encoding than UTF-8 ({len(content)} bytes)."
            ) from None
        return clean(text), f"\n[{torn} characters are not valid UTF-8 and are shown as \ufffd]"
    return clean(text), ""


def _line(entry: Found) -> str:
    name = clean(entry.path)
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {entry.size_bytes}"
        case _:
            return f"{name}  ({'a link, not followed' if entry.kind == 'link' else 'not a file'})"


def _shown(path: str) -> str:
    return shorten(clean(path), 200)
