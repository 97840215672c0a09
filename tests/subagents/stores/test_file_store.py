"""Definitions as files: what is written, what is made of files that people put there, what a fault costs."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.errors import InvalidDefinition, NameTaken, NotFound, StaleVersion, StorageFailed
from subagents.kinds import AGENT, SUBAGENT, Kind
from subagents.stores import documents
from subagents.stores.file import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = Path(__file__).parents[2] / "samples"
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


# --- What is written --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "folder"), [(SUBAGENT, "managed-subagents"), (AGENT, "custom-agents")])
def test_each_definition_is_one_file_with_the_field_names_and_nothing_else(home: Path, kind: Kind[Any], folder: str):
    stored = FileStore(kind, home).put(kind.validate(PLAIN), expected_version=None)
    raw = (home / folder / "scout.json").read_bytes()
    assert tuple(json.loads(raw)) == kind.fields
    assert stored.version == sha256(raw).hexdigest()
    assert {path.name for path in (home / folder).iterdir()} == {"scout.json", ".lock"}


def test_text_is_written_as_it_is(store: FileStore[Any], place: Path):
    prompt = "侦察 🦊 {{ x }} %s\r\n\t\u2028 </script>"
    store.put(item(system_prompt=prompt), expected_version=None)
    assert "侦察 🦊 {{ x }}" in (place / "scout.json").read_text(encoding="utf-8")
    assert store.get("scout").system_prompt == prompt


@given(
    st.fixed_dictionaries(
        {"system_prompt": st.text(min_size=1, max_size=300).filter(str.strip)},
        optional={
            "display_name": st.text(max_size=120),
            "tools": st.none() | st.lists(st.text(min_size=1, max_size=20).filter(str.strip), max_size=5),
            "max_turns": st.none() | st.integers(1, 1000),
            "enabled": st.booleans(),
        },
    )
)
def test_every_valid_document_comes_back_field_for_field(fields: dict[str, Any]):
    try:
        written = item(**fields)
    except InvalidDefinition:  # NUL and surrogates, which nothing stores
        return
    raw = documents.to_bytes(SUBAGENT.to_plain(written))
    assert SUBAGENT.validate(documents.from_bytes(raw)) == written
    assert documents.to_bytes(documents.from_bytes(raw)) == raw


def test_the_longest_definition_there_can_be_fits_into_a_file(store: FileStore[Any]):
    names = [f"{number:04}" + "\x01" * 296 for number in range(500)]
    longest = item(system_prompt="x" + "\x01" * 199_999, tools=names, skills=names, disallowed_tools=names)
    assert store.put(longest, expected_version=None).tools == tuple(names)


# --- What people put there --------------------------------------------------------------------------------------
def test_the_samples_give_one_definition_and_three_broken_rows_and_stay_as_they_are(store: FileStore[Any], place: Path):
    for sample, name in [
        ("31_managed_ok.json", "writer.json"),
        ("32_managed_truncated.json", "half-saved.json"),
        ("33_managed_empty.json", "empty.json"),
        ("34_managed_name_mismatch_and_extra.json", "Writer.json"),
    ]:
        (place / name).write_bytes((SAMPLES / sample).read_bytes())
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    contents = store.all()
    [writer] = contents.items
    assert (writer.name, writer.tools, writer.skills, writer.max_turns) == ("writer", None, (), 40)
    assert writer.system_prompt == "Write.\n\tKeep tabs."
    found = problems(store)
    assert set(found) == {"half-saved", "empty", "Writer.json"}
    assert found["empty"] == ("the file is empty",)
    assert found["half-saved"][0].startswith("not JSON at line 1, column 39: Unterminated string")
    assert "the file must be called writer.json" in found["Writer.json"]
    assert {problem.partition(":")[0] for problem in found["Writer.json"][1:]} == {"enabled", "future_field", "tools"}
    with pytest.raises(NameTaken):
        store.put(item("empty"), expected_version=None)
    assert {path.name: path.read_bytes() for path in place.iterdir() if path.name != ".lock"} == before


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf \n", "the file is empty"),
        (b"{", "not JSON at line 1, column 2"),
        (b"[]", "expected an object"),
        (b"null", "expected an object"),
        (b"\xff\xfe{}", "not UTF-8 at byte 0"),
        (b'\xef\xbb\xbf{"name": "\xb0\xa1"}', "not UTF-8 at byte 13"),
        (b'{"name": "scout", "name": "scout"}', 'the key "name" is given twice'),
        (b'{"token_budget": {"max_tokens": 1, "max_tokens": 2}}', 'the key "max_tokens" is given twice'),
        (b'{"max_turns": NaN}', "NaN is not a value"),
        (b'{"max_turns": -Infinity}', "-Infinity is not a value"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"max_turns": ' + b"9" * 5_000 + b"}", "Exceeds the limit"),
        (b"{}", "name: this field is required"),
        (json.dumps(PLAIN | {"name": "ranger"}).encode(), "name: expected scout"),
        (json.dumps(PLAIN | {"name": "Scout"}).encode(), "name: expected scout"),
        (json.dumps(PLAIN | {"system_prompt": "a\x00b"}).encode(), "system_prompt: holds a NUL"),
        (json.dumps(PLAIN | {"tools": ["a", "\ud800"]}).encode(), "tools: holds a NUL character or half"),
        (json.dumps(PLAIN | {"skills": [[[]]] * 9}).encode(), "skills"),
        (json.dumps(PLAIN).encode() + b" " * documents.LARGEST_FILE, "the file is larger than 8 MiB"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_row_that_says_why_and_hides_nothing(
    store: FileStore[Any], place: Path, content: bytes, problem: str
):
    store.put(item("ranger"), expected_version=None)
    (place / "scout.json").write_bytes(content)
    contents = store.all()
    assert [each.name for each in contents.items] == ["ranger"]
    assert list(problems(store)) == ["scout"]
    assert any(each.startswith(problem) for each in problems(store)["scout"]), problems(store)
    with pytest.raises(InvalidDefinition):
        store.get("scout")
    with pytest.raises(NameTaken):
        store.put(item(), expected_version=None)
    assert (place / "scout.json").read_bytes() == content


def test_a_byte_order_mark_is_tolerated(store: FileStore[Any], place: Path):
    (place / "scout.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(PLAIN).encode())
    assert store.get("scout").description == "Finds things."


def test_a_broken_file_is_replaced_or_deleted_only_by_whoever_names_its_version(store: FileStore[Any], place: Path):
    broken = place / "scout.json"
    broken.write_bytes(b"{half")
    [row] = store.all().invalid
    for version in ("", "1", sha256(b"{other").hexdigest()):
        with pytest.raises(StaleVersion):
            store.put(item(), expected_version=version)
        with pytest.raises(StaleVersion):
            store.delete("scout", expected_version=version)
    assert broken.read_bytes() == b"{half"
    assert store.put(item(), expected_version=row.version) == store.get("scout")
    broken.write_bytes(b"{half")
    store.delete("scout", expected_version=row.version)
    assert not broken.exists()


def _link(path: Path) -> None:
    target = path.parent.parent / "secret.json"
    target.write_text(json.dumps(PLAIN | {"system_prompt": "secret"}))
    path.symlink_to(target)


FOREIGN: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "notes.txt": (lambda path: path.write_text("x"), "notes.txt", "does not end in .json"),
    "scout": (lambda path: path.write_text(json.dumps(PLAIN)), "./scout", "does not end in .json"),
    "scout.JSON": (lambda path: path.write_text(json.dumps(PLAIN)), "scout.JSON", "does not end in .json"),
    "a_b.json": (lambda path: path.write_text(json.dumps(PLAIN)), "a_b.json", "must be called like its definition"),
    "Scout.json": (lambda path: path.write_text(json.dumps(PLAIN)), "Scout.json", "must be called scout.json"),
    "sub": (lambda path: path.mkdir(), "sub/", "this is a folder"),
    "scout.json": (lambda path: path.mkdir(), "scout", "this is a folder"),
    "link.json": (_link, "link", "symbolic link"),
    "pipe.json": (os.mkfifo, "pipe", "not a regular file"),
}


@pytest.mark.parametrize("file_name", FOREIGN)
def test_a_foreign_file_is_one_broken_row_and_left_alone(store: FileStore[Any], place: Path, file_name: str):
    make, name, problem = FOREIGN[file_name]
    make(place / file_name)
    assert [(row, problem in "; ".join(said)) for row, said in problems(store).items()] == [(name, True)]
    assert store.all().items == ()
    before = (place / file_name).lstat()
    store.put(item("ranger"), expected_version=None)
    with pytest.raises((StaleVersion, StorageFailed)):
        store.delete(name, expected_version="0" * 64)
    assert (place / file_name).lstat().st_ctime_ns == before.st_ctime_ns


def test_a_link_is_neither_followed_nor_replaced(store: FileStore[Any], place: Path):
    _link(place / "scout.json")
    assert "secret" not in repr(store.all())
    for version in (None, "0" * 64):
        with pytest.raises((NameTaken, StorageFailed)):
            store.put(item(), expected_version=version)
    assert (place / "scout.json").is_symlink()
    assert "secret" in (place.parent / "secret.json").read_text()


def test_a_foreign_file_can_be_deleted_on_purpose(store: FileStore[Any], place: Path):
    (place / "Scout.json").write_text("x")
    [row] = store.all().invalid
    store.delete("Scout.json", expected_version=row.version)
    assert store.all().invalid == ()


def test_a_name_that_differs_in_capitals_only_is_taken(store: FileStore[Any], place: Path):
    (place / "SCOUT.json").write_text("x")
    with pytest.raises(NameTaken):
        store.put(item(), expected_version=None)


@pytest.mark.parametrize(
    "name", [".hidden.json", ".scout.json.a1.tmp", "scout.json~", ".scout.json.swp", "#scout.json#"]
)
def test_hidden_and_temporary_files_are_no_rows(store: FileStore[Any], place: Path, name: str):
    (place / name).write_text("x")
    assert (store.all().items, store.all().invalid) == ((), ())


@pytest.mark.parametrize(
    "name", ["../secret", "..", ".", "", "/etc/passwd", "a/b", "a\x00b", "\ud800", "x" * 5000, ".lock"]
)
def test_no_name_leads_out_of_the_folder(store: FileStore[Any], place: Path, name: str):
    (place.parent / "secret.json").write_text(json.dumps(PLAIN))
    (place / ".lock").touch()
    assert store.find(name) is None
    with pytest.raises(NotFound):
        store.get(name)
    with pytest.raises(NotFound):
        store.delete(name, expected_version="1")
    assert (place.parent / "secret.json").exists()


def test_a_file_name_that_is_no_text_is_shown_all_the_same(store: FileStore[Any], place: Path):
    Path(os.fsdecode(os.fsencode(place) + b"/\xff.json")).write_text("{}")
    assert list(problems(store)) == ["\ufffd.json"]
    store.signature()
