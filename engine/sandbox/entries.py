"""Single steps on the entries of one open folder. None takes a path apart, and none follows a link.

`shown` is always the path as the caller wrote it, for the sentence of an error.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.sandbox.errors import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILE_BYTES: Final = 16 << 20
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe waits for its other end unless told not to.
_FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One thing in the workspace.

    `kind` is file, folder, link or other; `size_bytes` is 0 for all but files.
    """

    path: str  # from the workspace's root, or the bare name in a listing
    kind: str
    size_bytes: int = 0


@contextmanager
def closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


def open_folder(name: str | os.PathLike[str], shown: str, *, within: int | None = None) -> int:
    """Return a descriptor of a folder; FileNotFoundError when there is none."""
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=within)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        is_link = stat.S_ISLNK(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
        raise (link_refused(shown) if is_link else WorkspaceError(f'"{shown}" is not a folder.')) from None


def make_folder(folder: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
        _adopt(name, folder, os.fstat(folder))


def give_away(folder: int, user_id: int) -> None:
    """Make everything in and below the open folder belong to `user_id`."""
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            os.chown(name, user_id, user_id, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                with closing(open_folder(name, name, within=folder)) as inner:
                    give_away(inner, user_id)
    # Last, so that a folder which belongs to its user is known to be finished.
    os.chown(folder, user_id, user_id)


def listing(folder: int) -> list[Found]:
    """Return what the folder holds, by name; what vanishes meanwhile is left out."""
    found = []
    for name in sorted(os.listdir(folder)):
        with suppress(FileNotFoundError):
            found.append(describe(folder, name, name))
    return found


def describe(folder: int, name: str, path: str) -> Found:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISREG(status.st_mode):
        return Found(path=path, kind="file", size_bytes=status.st_size)
    if stat.S_ISDIR(status.st_mode):
        return Found(path=path, kind="folder")
    return Found(path=path, kind="link" if stat.S_ISLNK(status.st_mode) else "other")


def read_file(folder: int, name: str, shown: str, limit_bytes: int) -> bytes:
    with closing(_open_file(folder, name, shown, os.O_RDONLY)) as fd:
        size_bytes = os.fstat(fd).st_size
        chunks = []
        left = limit_bytes + 1
        while left > 0 and (chunk := os.read(fd, min(left, 1 << 20))):
            chunks.append(chunk)
            left -= len(chunk)
    if left <= 0:
        raise WorkspaceError(f'"{shown}" is too large: {size_bytes} bytes, the limit is {limit_bytes}.')
    return b"".join(chunks)


def append_file(folder: int, name: str, shown: str, content: bytes) -> int:
    """Add to the file's end in place, so that a program which writes to it at the same time loses nothing."""
    with closing(_open_file(folder, name, shown, os.O_WRONLY | os.O_APPEND | os.O_CREAT)) as fd:
        before = os.fstat(fd)
        _check_size(shown, before.st_size + len(content))
        if before.st_size == 0:
            _adopt(fd, None, os.fstat(folder))
        try:
            _write_all(fd, content)
        except OSError:
            os.ftruncate(fd, before.st_size)
            raise
        return before.st_size + len(content)


def replace_file(folder: int, name: str, shown: str, content: bytes) -> int:
    """Put a whole file in place at once; an existing one keeps its permissions."""
    _check_size(shown, len(content))
    mode = _replaceable_mode(folder, name, shown)
    temporary = f".{secrets.token_hex(8)}.tmp"
    fd = os.open(temporary, _FILE_FLAGS | os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    try:
        with closing(fd):
            _write_all(fd, content)
            _adopt(fd, None, os.fstat(folder))
            os.fchmod(fd, mode)
            os.fsync(fd)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return len(content)


def link_refused(shown: str) -> WorkspaceError:
    return WorkspaceError(f'"{shown}" is or goes through a symbolic link, which file tools do not follow.')


def _replaceable_mode(folder: int, name: str, shown: str) -> int:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    _check_regular(status, shown)
    return stat.S_IMODE(status.st_mode) & 0o777


def _open_file(folder: int, name: str, shown: str, flags: int) -> int:
    try:
        fd = os.open(name, flags | _FILE_FLAGS, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise link_refused(shown) from None
        # A pipe nobody reads, a socket, and a folder opened for writing.
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise WorkspaceError(f'"{shown}" is not a regular file.') from None
        raise
    try:
        _check_regular(os.fstat(fd), shown)
    except WorkspaceError:
        os.close(fd)
        raise
    return fd


def _check_regular(status: os.stat_result, shown: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise link_refused(shown)
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f'"{shown}" is a folder.')
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f'"{shown}" is not a regular file.')


def _check_size(shown: str, size_bytes: int) -> None:
    if size_bytes > MAX_FILE_BYTES:
        raise WorkspaceError(f'"{shown}" would have {size_bytes} bytes, the limit is {MAX_FILE_BYTES}.')


def _write_all(fd: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _adopt(target: int | str, within: int | None, folder: os.stat_result) -> None:
    """Give what root has just made to the folder's owner, whose commands shall be able to change it."""
    if os.geteuid() != 0:
        return
    if within is None:
        os.chown(target, folder.st_uid, folder.st_gid)
    else:
        os.chown(target, folder.st_uid, folder.st_gid, dir_fd=within, follow_symlinks=False)
