"""Definitions as files: how a change is noticed, and what a fault of process, lock or disk costs."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING, Any

import pytest

from subagents.errors import StorageFailed
from subagents.kinds import SUBAGENT
from subagents.stores import folder
from subagents.stores.file import FileStore

if TYPE_CHECKING:
    from pathlib import Path

PLAIN: dict[str, Any] = {"name": "scout", "description": "Finds things.", "system_prompt": "Look."}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def store(home: Path) -> FileStore[Any]:
    return FileStore(SUBAGENT, home)


@pytest.fixture
def place(home: Path) -> Path:
    """The folder of managed subagents."""
    path = home / "managed-subagents"
    path.mkdir()
    return path


def item(name: str = "scout", **fields: Any) -> Any:
    return SUBAGENT.validate(PLAIN | {"name": name} | fields)


def problems(store: FileStore[Any]) -> dict[str, tuple[str, ...]]:
    return {broken.name: broken.problems for broken in store.all().invalid}


# --- Changes are noticed ------------------------------------------------------------------------------------------
@pytest.fixture
def all_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as unchanged by their facts alone, as they do once they are older than two seconds."""
    monkeypatch.setattr("subagents.stores.file._UNSETTLED_SECONDS", float("-inf"))


def next_tick(path: Path) -> None:
    """Go on once the file system's clock has moved past the file's last change."""
    probe = path.parent / ".probe"
    while not probe.exists() or probe.stat().st_ctime_ns <= path.stat().st_ctime_ns:
        probe.write_text("x")


def rewrite_unnoticed(path: Path, old: bytes, new: bytes) -> None:
    facts = path.stat()
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(old, new))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)


@pytest.mark.usefixtures("all_settled")
def test_a_rewrite_that_restores_size_and_time_is_noticed(store: FileStore[Any], place: Path):
    store.put(item(), expected_version=None)
    next_tick(place / "scout.json")
    before = store.signature()
    assert store.signature() == before
    rewrite_unnoticed(place / "scout.json", b"Finds things.", b"Loses things.")
    assert store.signature() != before
    assert store.all().items[0].description == "Loses things."


def test_two_writes_within_one_tick_of_the_clock_are_both_noticed(store: FileStore[Any], place: Path):
    store.put(item(), expected_version=None)
    before = store.signature()
    rewrite_unnoticed(place / "scout.json", b"Finds things.", b"Loses things.")
    assert store.signature() != before


@pytest.mark.usefixtures("all_settled")
def test_where_a_file_system_keeps_no_time_of_change_a_fresh_look_still_reads(
    store: FileStore[Any], place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "subagents.stores.file.settled_facts", lambda found: (found.st_mtime_ns, 0, found.st_size, 0, 0)
    )
    store.put(item(), expected_version=None)
    before = store.signature()
    rewrite_unnoticed(place / "scout.json", b"Finds things.", b"Loses things.")
    assert store.signature() == before
    assert store.signature(fresh=True) != before
    assert store.all().items[0].description == "Loses things."


@pytest.mark.usefixtures("all_settled")
def test_only_files_that_changed_are_read_again(store: FileStore[Any], place: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(20):
        store.put(item(f"scout-{number}"), expected_version=None)
    store.all()
    reads: list[str] = []
    really = folder.Folder.read

    def counted(self: folder.Folder, name: str, most: int) -> Any:
        reads.append(name)
        return really(self, name, most)

    monkeypatch.setattr(folder.Folder, "read", counted)
    store.signature()
    store.all()
    assert reads == []
    (place / "scout-7.json").write_text("{}")
    store.signature()
    assert reads == ["scout-7.json"]


# --- Faults -------------------------------------------------------------------------------------------------------
class PowerFailure(BaseException):
    """Nothing of the process goes on after this."""


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_crash_before_the_rename_leaves_the_old_file_and_the_next_writer_tidies_up(
    store: FileStore[Any], place: Path, monkeypatch: pytest.MonkeyPatch, step: str
):
    first = store.put(item(), expected_version=None)

    def fail(*_arguments: Any) -> None:
        raise PowerFailure

    with monkeypatch.context() as broken:
        broken.setattr(os, step, fail)
        broken.setattr(os, "unlink", fail)  # a dead process takes nothing away
        with pytest.raises(PowerFailure):
            store.put(item(display_name="New"), expected_version=first.version)
    assert [path for path in place.iterdir() if path.suffix == ".tmp"]
    assert store.all().items == (first,)
    assert store.all().invalid == ()
    assert store.put(item(display_name="New"), expected_version=first.version).display_name == "New"
    assert {path.name for path in place.iterdir()} == {"scout.json", ".lock"}


@pytest.mark.parametrize("step", ["fsync", "replace", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
def test_a_fault_of_the_disk_is_a_clear_error_and_loses_nothing(
    store: FileStore[Any], place: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
):
    first = store.put(item(), expected_version=None)

    def fail(*_arguments: Any, **_named: Any) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as broken:
        broken.setattr(os, step, fail)
        with pytest.raises(StorageFailed) as failed:
            store.put(item(display_name="New"), expected_version=first.version)
    assert (
        str(failed.value) == (f"managed-subagents: scout could not be read or stored: {os.strerror(code)}")
        or step == "open"
    )
    assert store.all().items == (first,)
    assert {path.name for path in place.iterdir()} == {"scout.json", ".lock"}


def test_a_file_that_may_not_be_read_is_one_broken_row(
    store: FileStore[Any], place: Path, monkeypatch: pytest.MonkeyPatch
):
    store.put(item(), expected_version=None)

    def refuse(*_arguments: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(folder.Folder, "read", refuse)
    assert problems(store) == {"scout": ("cannot be read: Permission denied",)}


def test_a_folder_that_cannot_be_listed_is_one_broken_row(home: Path):
    (home / "managed-subagents").write_text("a file where the folder belongs")
    store = FileStore(SUBAGENT, home)
    assert problems(store) == {"managed-subagents/": ("cannot be read: Not a directory",)}
    with pytest.raises(StorageFailed):
        store.put(item(), expected_version=None)


def test_a_lock_that_nobody_gives_back_is_an_error_and_not_a_wait_for_ever(
    store: FileStore[Any], place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder, "_WAIT_SECONDS", 0.05)
    with (place / ".lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StorageFailed, match="held the lock"):
            store.put(item(), expected_version=None)
    assert store.put(item(), expected_version=None)


def test_the_permissions_of_a_file_are_kept(store: FileStore[Any], place: Path):
    first = store.put(item(), expected_version=None)
    assert (place / "scout.json").stat().st_mode & 0o777 == 0o600
    (place / "scout.json").chmod(0o640)
    store.put(item(display_name="New"), expected_version=first.version)
    assert (place / "scout.json").stat().st_mode & 0o777 == 0o640
