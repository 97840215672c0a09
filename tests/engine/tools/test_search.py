from __future__ import annotations

import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from engine.tools.patterns import PathPattern
from engine.tools.search import MAX_FOUND, MAX_LINE_CHARACTERS, MAX_MATCHES, LineSearch
from tests.patience import PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.md", ["a.md"], ["a/b.md", "a.mdx"]),
        ("**/*.md", ["a.md", "a/b/c.md"], ["a.txt"]),
        ("src/**", ["src/a", "src/b/c"], ["lib/a"]),
        ("a/**/z", ["a/z", "a/b/c/z"], ["a/b", "z"]),
        ("n?te-[0-9].txt", ["note-1.txt"], ["note-x.txt", "nte-1.txt"]),
        ("./a//b", ["a/b"], ["b"]),
    ],
)
def test_a_path_pattern_matches_as_a_shell_would(pattern, matching, other):
    compiled = PathPattern(pattern)
    assert all(compiled.matches(path) for path in matching)
    assert not any(compiled.matches(path) for path in other)


@given(st.text(alphabet="*?[]!a/", min_size=1, max_size=60))
def test_no_path_pattern_can_make_the_comparison_grow_out_of_hand(text):
    try:
        compiled = PathPattern(text)
    except ValueError:
        return
    started = time.process_time()
    compiled.matches("/".join(["a" * 60] * 40))
    assert time.process_time() - started < 5


@pytest.fixture
def files(workspace):
    workspace.write("a.md", b"# Titel\nsome Text\n")
    workspace.write("src/b.py", b"import os\nprint('text')\n")
    workspace.write("src/deep/c.py", "# 中文 text\n".encode())
    workspace.write("bin", b"text\x00\x01")


async def test_files_are_found_by_pattern(call, files):
    assert (await call("glob", pattern="**/*.py")).content == "src/b.py\nsrc/deep/c.py"
    assert (await call("glob", pattern="/workspace/src/*.py")).content == "src/b.py"
    assert (await call("glob", pattern="*.none")).content == "No file matches."


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*", "", "/".join("a" * 50), "x" * 2_000])
async def test_a_pattern_that_leads_out_or_is_no_pattern_is_refused(call, files, pattern):
    assert (await call("glob", pattern=pattern)).status == "error"


async def test_lines_are_found_with_file_and_number_and_what_was_not_searched_is_said(call, files):
    answer = await call("grep", pattern="(?i)text")
    assert set(answer.content.splitlines()) == {
        "a.md:2:some Text",
        "src/b.py:2:print('text')",
        "src/deep/c.py:1:# 中文 text",
        "[1 binary, large or unreadable files were not searched]",
    }


async def test_a_search_can_be_narrowed_to_a_folder_a_file_or_names(call, files):
    assert (await call("grep", pattern="text", path="src", glob="c.*")).content == "src/deep/c.py:1:# 中文 text"
    assert (await call("grep", pattern="Text", path="a.md")).content == "a.md:2:some Text"
    assert (await call("grep", pattern="absent", path="a.md")).content == "No line matches."


async def test_a_search_where_nothing_is_says_so(call, files):
    answer = await call("grep", pattern="x", path="nowhere")
    assert (answer.status, answer.content) == ("error", '"nowhere" does not exist.')


@pytest.mark.parametrize("pattern", ["(", "a{5,1}", "(" * 500 + ")" * 500, "x" * 2_000])
async def test_a_pattern_that_is_no_regular_expression_is_a_failed_result(call, files, pattern):
    assert (await call("grep", pattern=pattern)).status == "error"


def test_a_pattern_that_would_try_for_ever_is_stopped(workspace):
    workspace.write("f", b"a" * 5_000 + b"!\n")
    started = time.monotonic()
    search = LineSearch(pattern=regex.compile(r"(a|a|aa)+(b|c)\1$"), only=None, deadline=started + 0.3)
    search.run(workspace, ".")
    assert (search.complete, search.lines) == (False, [])
    assert time.monotonic() - started < PATIENCE_SECONDS


async def test_many_matches_and_long_lines_are_cut_and_that_is_said(call, workspace):
    workspace.write("f", b"hit\n" * 1_000)
    workspace.write("long", b"miss" + b"x" * 10_000)
    lines = (await call("grep", pattern="hit")).content.splitlines()
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1] == f"[cut after {MAX_MATCHES} lines; narrow the search]"
    long_line = (await call("grep", pattern="miss")).content
    assert len(long_line) < MAX_LINE_CHARACTERS + 20
    assert "characters cut" in long_line


async def test_many_files_are_cut_and_that_is_said(call, workspace):
    workspace.prepare()
    for number in range(MAX_FOUND + 5):
        (workspace.root / f"f{number}").touch()
    lines = (await call("glob", pattern="*")).content.splitlines()
    assert len(lines) == MAX_FOUND + 1
    assert "cut after" in lines[-1]
