from __future__ import annotations

import multiprocessing
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sandbox.errors import WorkspaceError
from engine.sandbox.paths import path_parts
from engine.sandbox.workspace import MAX_FILE_BYTES, Workspace


@pytest.mark.parametrize(
    "path", ["a/b.txt", "./a/b.txt", "/workspace/a/b.txt", "a//b.txt", "x/../a/b.txt", "a/./b.txt"]
)
def test_one_file_may_be_named_in_all_usual_ways(workspace, path):
    assert workspace.resolve(path) == workspace.root / "a" / "b.txt"


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "a/../../x",
        "/workspace/../x",
        "/etc/passwd",
        "/workspacex/a",
        "/",
        "//workspace/a",
        "a\x00b",
        "a\nb",
        "\udcaf",
        "n" * 256,
        "字" * 86,
        "a/" * 41 + "b",
        "abc/" * 501,
    ],
)
def test_a_path_that_leads_elsewhere_or_cannot_be_a_name_is_refused(workspace, path):
    with pytest.raises(WorkspaceError):
        workspace.resolve(path)
    with pytest.raises(WorkspaceError):
        workspace.write(path + "/f", b"x")
    assert workspace.listing() == []


def test_a_refusal_names_the_path_as_written_and_never_the_hosts_folder(workspace):
    workspace.write("a.txt", b"")
    for action in (lambda: workspace.listing("a.txt"), lambda: workspace.read("../b"), lambda: workspace.read(".")):
        with pytest.raises(WorkspaceError) as refusal:
            action()
        assert str(workspace.root.parent) not in str(refusal.value)


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
def test_no_path_ever_gives_a_step_upwards_or_an_empty_name(path):
    try:
        parts = path_parts(path)
    except WorkspaceError:
        return
    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\x00" in part for part in parts)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("SECRET")
    return folder


def test_a_link_is_refused_as_a_file_as_a_folder_and_on_the_way(workspace, outside):
    (workspace.root / "file").symlink_to(outside / "secret.txt")
    (workspace.root / "folder").symlink_to(outside)
    for path in ("file", "folder/secret.txt"):
        for action in (
            lambda path=path: workspace.read(path),
            lambda path=path: workspace.write(path, b"x"),
            lambda path=path: workspace.write(path, b"x", append=True),
            lambda path=path: workspace.edit(path, lambda _: b"x"),
            lambda path=path: workspace.resolve(path),
        ):
            with pytest.raises(WorkspaceError, match="symbolic link"):
                action()
    with pytest.raises(WorkspaceError, match="symbolic link"):
        workspace.listing("folder")
    with pytest.raises(WorkspaceError, match="symbolic link"):
        workspace.write("folder/new/deep.txt", b"x")
    assert [found.kind for found in workspace.listing()] == ["link", "link"]
    assert list(workspace.files(deadline=time.monotonic() + 5)) == []
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("secret.txt", "SECRET")]


def test_a_link_put_in_between_a_check_and_its_use_is_never_followed(workspace, outside):
    """A folder and a link to elsewhere take turns under one name while files are read and written."""
    real, link, name = (workspace.root / part for part in ("real", "link", "name"))
    real.mkdir()
    (real / "secret.txt").write_text("mine")
    link.symlink_to(outside)
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            real.rename(name)
            name.rename(real)
            link.rename(name)
            name.rename(link)

    swapper = threading.Thread(target=exchange)
    swapper.start()
    seen = set()
    try:
        for _ in range(1_500):
            try:
                seen.add(workspace.read("name/secret.txt"))
                workspace.edit("name/secret.txt", lambda _: b"mine")
            except (WorkspaceError, FileNotFoundError):
                continue
    finally:
        stop.set()
        swapper.join()
    assert seen <= {b"mine"}
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("secret.txt", "SECRET")]


def test_pipes_sockets_and_folders_are_no_files_and_never_block(workspace):
    os.mkfifo(workspace.root / "pipe")
    (workspace.root / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(workspace.root)  # a socket's path may have 108 bytes only
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for name in ("pipe", "socket", "folder"):
            for action in (
                lambda name=name: workspace.read(name),
                lambda name=name: workspace.write(name, b"x"),
                lambda name=name: workspace.write(name, b"x", append=True),
            ):
                with pytest.raises(WorkspaceError, match=r"not a regular file|is a folder"):
                    action()
    assert {found.kind for found in workspace.listing()} == {"other", "folder"}


def test_a_file_is_written_with_its_folders_and_read_back(workspace):
    assert workspace.write("a/b/c.txt", b"one") == 3
    assert workspace.write("a/b/c.txt", b"two!", append=True) == 7
    assert workspace.read("/workspace/a/b/c.txt") == b"onetwo!"
    found = [(f.path, f.size_bytes) for f in workspace.files(deadline=time.monotonic() + 5)]
    assert found == [("a/b/c.txt", 7)]


def test_a_replaced_file_keeps_its_permissions_and_leaves_no_other_file(workspace):
    workspace.write("run.sh", b"one")
    (workspace.root / "run.sh").chmod(0o750)
    workspace.write("run.sh", b"two")
    assert (workspace.root / "run.sh").stat().st_mode & 0o777 == 0o750
    assert [found.path for found in workspace.listing()] == ["run.sh"]


def test_a_reader_never_sees_a_part_of_a_replaced_file(workspace):
    versions = [bytes([65 + n]) * 200_000 for n in range(4)]
    workspace.write("f", versions[0])
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [workspace.write("f", versions[n % 4]) for n in range(40)])
        while not writing.done():
            assert workspace.read("f") in versions
        writing.result()


def test_a_failed_edit_leaves_the_file_as_it_was(workspace):
    workspace.write("f", b"before")

    def fail(_: bytes) -> bytes:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        workspace.edit("f", fail)
    assert workspace.read("f") == b"before"
    assert [found.path for found in workspace.listing()] == ["f"]


def test_a_file_above_the_limit_is_neither_read_nor_written(workspace):
    with pytest.raises(WorkspaceError, match="limit"):
        workspace.write("big", bytes(MAX_FILE_BYTES + 1))
    workspace.write("big", bytes(MAX_FILE_BYTES))
    with pytest.raises(WorkspaceError, match="limit"):
        workspace.write("big", b"x", append=True)
    with pytest.raises(WorkspaceError, match="too large"):
        workspace.read("big", limit_bytes=100)


def _count_up(root: Path, times: int) -> None:
    workspace = Workspace(root)
    for _ in range(times):
        workspace.edit("counter", lambda before: b"%d" % (int(before) + 1))


def test_writers_of_one_file_take_turns_across_threads_and_processes(workspace):
    workspace.write("counter", b"0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_count_up, args=(workspace.root, 60)) for _ in range(2)]
    for process in processes:
        process.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: _count_up(workspace.root, 30), range(4)))
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0, 0]
    assert workspace.read("counter") == b"240"


def test_locks_are_no_part_of_the_visible_workspace(workspace):
    workspace.write("f", b"x")
    assert [path.name for path in workspace.root.iterdir()] == ["f"]


def test_a_search_stops_at_its_deadline(workspace):
    workspace.write("a/f", b"x")
    with pytest.raises(TimeoutError):
        list(workspace.files(deadline=time.monotonic() - 1))


def test_removing_a_workspace_takes_its_files_and_locks_and_nothing_links_lead_to(workspace, outside):
    workspace.write("a/f", b"x")
    (workspace.root / "folder").symlink_to(outside)
    workspace.remove()
    workspace.remove()
    assert not workspace.root.exists()
    assert [path.name for path in workspace.root.parent.rglob("*")] == [".locks"]
    assert (outside / "secret.txt").read_text() == "SECRET"
