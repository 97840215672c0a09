"""A thread's folder: every path is walked anew at the moment of use, and no link is followed.

Commands may change the folder at any time, so a check made before the use proves nothing.
Each operation therefore opens one folder after the other, refusing links, and acts on the
last open folder and not on a path.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from engine.sandbox import entries
from engine.sandbox.entries import MAX_FILE_BYTES, Found
from engine.sandbox.errors import WorkspaceError
from engine.sandbox.locks import file_lock
from engine.sandbox.paths import MAX_DEPTH, VISIBLE_ROOT, path_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["MAX_FILE_BYTES", "SANDBOX_UID", "VISIBLE_ROOT", "Found", "Workspace"]

SANDBOX_UID: Final = 65534  # who runs commands when the service is root; owns the workspace then


@dataclass(frozen=True, slots=True)
class Workspace:
    """The files of one thread below `root`. All methods block; call them from a thread.

    They raise WorkspaceError with a sentence for the caller, and OSError for what the
    disk refuses. Paths are as `path_parts` takes them.
    """

    root: Path

    def prepare(self) -> None:
        """Make the folder. When the service is root it then belongs to whoever runs the commands."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.geteuid() == 0 and self.root.stat().st_uid != SANDBOX_UID:
            with entries.closing(entries.open_folder(self.root, self.root.name)) as folder:
                entries.give_away(folder, SANDBOX_UID)

    def remove(self) -> None:
        """Delete every file of the thread; nothing happens when there is none."""
        for folder in (self.root, self._lock_folder):
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)

    def resolve(self, path: str) -> Path:
        """Return where `path` lies on the host, after a walk that met no link.

        The answer is for showing and comparing. What it names may be exchanged a moment
        later, so files are opened through this class and not through the answer.
        """
        parts = path_parts(path)
        with suppress(FileNotFoundError), self._folder(parts[:-1], path) as folder:
            if parts and stat.S_ISLNK(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                raise entries.link_refused(path)
        return self.root.joinpath(*parts)

    def read(self, path: str, *, limit_bytes: int = MAX_FILE_BYTES) -> bytes:
        """Return a file's content; one larger than `limit_bytes` is refused."""
        parts = self._file_parts(path)
        with self._folder(parts[:-1], path) as folder:
            return entries.read_file(folder, parts[-1], path, limit_bytes)

    def write(self, path: str, content: bytes, *, append: bool = False) -> int:
        """Put `content` into a file, missing folders included, and return the file's new size in bytes.

        A whole file is replaced at once: readers see the old or the new one, never a part.
        """
        parts = self._file_parts(path)
        with self._lock(parts), self._folder(parts[:-1], path, create=True) as folder:
            if append:
                return entries.append_file(folder, parts[-1], path, content)
            return entries.replace_file(folder, parts[-1], path, content)

    def edit(self, path: str, change: Callable[[bytes], bytes]) -> int:
        """Replace a file's content by `change` of it, no other writer in between; return the new size."""
        parts = self._file_parts(path)
        with self._lock(parts), self._folder(parts[:-1], path) as folder:
            before = entries.read_file(folder, parts[-1], path, MAX_FILE_BYTES)
            return entries.replace_file(folder, parts[-1], path, change(before))

    def listing(self, path: str = ".") -> list[Found]:
        """Return what a folder holds, by name."""
        with self._folder(path_parts(path), path) as folder:
            return entries.listing(folder)

    def files(self, path: str = ".", *, deadline: float) -> Iterator[Found]:
        """Yield the regular files below a folder, or the one file `path` names, until `deadline`.

        `deadline` is a time.monotonic() moment; at it TimeoutError is raised.
        """
        parts = path_parts(path)
        if parts:
            with self._folder(parts[:-1], path) as folder:
                found = entries.describe(folder, parts[-1], "/".join(parts))
                if found.kind == "file":
                    yield found
                    return
        yield from self._files_below(parts, path, deadline)

    def _files_below(self, parts: tuple[str, ...], path: str, deadline: float) -> Iterator[Found]:
        waiting = [parts]
        while waiting:
            if time.monotonic() > deadline:
                raise TimeoutError
            current = waiting.pop()
            try:
                with self._folder(current, path) as folder:
                    listing = entries.listing(folder)
            except (WorkspaceError, OSError):
                if current == parts:
                    raise
                continue  # a folder below was exchanged or removed since it was listed
            for found in listing:
                if found.kind == "folder" and len(current) < MAX_DEPTH:
                    waiting.append((*current, found.path))
                elif found.kind == "file":
                    yield replace(found, path="/".join((*current, found.path)))

    @property
    def _lock_folder(self) -> Path:
        return self.root.parent / ".locks" / self.root.name

    def _lock(self, parts: tuple[str, ...]) -> AbstractContextManager[None]:
        return file_lock(self._lock_folder, "/".join(parts))

    def _file_parts(self, path: str) -> tuple[str, ...]:
        parts = path_parts(path)
        if not parts:
            raise WorkspaceError(f'"{path}" is the workspace itself, not a file.')
        return parts

    @contextmanager
    def _folder(self, parts: tuple[str, ...], path: str, *, create: bool = False) -> Iterator[int]:
        self.prepare()
        current = entries.open_folder(self.root, path)
        try:
            for name in parts:
                if create:
                    entries.make_folder(current, name)
                inner = entries.open_folder(name, path, within=current)
                os.close(current)
                current = inner
            yield current
        finally:
            os.close(current)
