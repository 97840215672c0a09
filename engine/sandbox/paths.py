"""What a path written by a model may look like."""

from __future__ import annotations

from typing import Final

from engine.sandbox.errors import WorkspaceError
from engine.text import clean, shorten

VISIBLE_ROOT: Final = "/workspace"  # what agents and their commands call the workspace
MAX_NAME_BYTES: Final = 255
MAX_PATH_BYTES: Final = 2_000
MAX_DEPTH: Final = 40


def path_parts(path: str) -> tuple[str, ...]:
    """Return the names from the workspace's root down to `path`; () is the root itself.

    Takes `notes.txt`, `./a/b` and `/workspace/a`; `..` is followed inside the workspace.
    Raises WorkspaceError for whatever leads elsewhere or cannot be a name.
    """
    if any(character < " " or character == "\x7f" for character in path) or clean(path) != path:
        raise WorkspaceError(f"{_shown(path)} holds characters that no file name may have.")
    if path.startswith("/") and path != VISIBLE_ROOT and not path.startswith(VISIBLE_ROOT + "/"):
        raise WorkspaceError(
            f"{_shown(path)} is outside the workspace. Use a relative path or one below {VISIBLE_ROOT}."
        )
    parts: list[str] = []
    for name in path.removeprefix(VISIBLE_ROOT if path.startswith("/") else "").split("/"):
        if name == ".." and not parts:
            raise WorkspaceError(f"{_shown(path)} leads out of the workspace.")
        if name == "..":
            parts.pop()
        elif name not in ("", "."):
            parts.append(name)
    _check_size(path, parts)
    return tuple(parts)


def _check_size(path: str, parts: list[str]) -> None:
    longest_name_bytes = max((len(name.encode()) for name in parts), default=0)
    if len(path.encode()) > MAX_PATH_BYTES or longest_name_bytes > MAX_NAME_BYTES:
        raise WorkspaceError(
            f"{_shown(path)} is too long: a name may have {MAX_NAME_BYTES} bytes, a path {MAX_PATH_BYTES}."
        )
    if len(parts) > MAX_DEPTH:
        raise WorkspaceError(f"{_shown(path)} is nested deeper than {MAX_DEPTH} folders.")


def _shown(path: str) -> str:
    return f'"{shorten(clean(path), 200)}"'
