"""langgraph.json is read strictly: every problem has a line and a path, one bad graph hides no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graphs.file import GraphEntry, read_graphs, spoken

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def sample(name: str) -> Any:
    return read_graphs((SAMPLES / name).read_bytes())


def by_name(file: Any) -> dict[str, GraphEntry]:
    return {entry.name: entry for entry in file.graphs}


def test_a_python_projects_graphs_are_listed_with_their_files():
    file = sample("25_langgraph_python.json")
    assert [(entry.name, entry.target, entry.problems) for entry in file.graphs] == [
        ("supervisor", "./src/supervisor.py:graph", ()),
        ("researcher", "./src/researcher.py:graph", ()),
        ("coder", "./src/coder.py:graph", ()),
    ]
    assert (file.refused, file.problems, file.dependencies, file.env_file) == (False, (), (".",), "./.env")


def test_a_typescript_graph_is_listed_as_one_that_cannot_run_and_its_routes_are_named():
    file = sample("26_langgraph_node_http.json")
    (entry,) = file.graphs
    assert entry.problems == ("langgraph.json:4:14 graphs.agent: only graphs written in Python can run here",)
    assert [problem.path for problem in file.problems] == ["graphs.agent", "http"]


def test_of_an_odd_file_each_problem_is_named_and_no_duplicate_is_lost():
    file = sample("27_langgraph_odd.json")
    graphs = by_name(file)
    assert set(graphs) == {"text_to_sql", "obj_form", "windows", "no_colon"}
    assert "2 times, in lines 4, 8" in graphs["text_to_sql"].problems[0]
    assert (graphs["obj_form"].description, graphs["obj_form"].problems) == ("object form", ())
    assert "write the path with /" in graphs["windows"].problems[0]
    assert "expected path:name" in graphs["no_colon"].problems[0]
    assert [problem.line for problem in file.problems] == [6, 7, 8, 10]
    assert file.env == {"DEMO_KEY": "inline-not-a-file"}


def test_no_value_of_the_environment_is_ever_repeated():
    file = sample("27_langgraph_odd.json")
    refused = read_graphs(b'{"graphs": {}, "env": {"A": "s3cr3t", "A": "s3cr3t", "B C": "s3cr3t", "D": 3}}')
    assert "inline-not-a-file" not in f"{file!r} {[str(one) for one in file.problems]}"
    assert refused.refused
    assert "s3cr3t" not in f"{refused!r} {[str(one) for one in refused.problems]}"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not JSON"),
        (b"[]", "expected an object"),
        (b"\xff", "byte offset 0"),
        (b'{"graphs": [1]}', "name to path"),
        (b"{}", "this key is missing"),
        (b'{"graphs": {}, "graphs": {}}', "first in line 1"),
        (b'{"graphs": {"a": NaN}}', "NaN is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"graphs": {}, "dependencies": "."}', "expected a list"),
        (b" " * (1024 * 1024 + 1), "at most"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_place(raw: bytes, words: str):
    file = read_graphs(raw)
    assert file.refused
    assert words in str(file.problems[0])


@pytest.mark.parametrize("name", ["", "-a", "a b", "../x", "lead_agent", "Lead-Agent", "名", "a" * 65, "a\x00b"])
def test_a_name_that_no_address_takes_is_a_problem_of_its_graph_alone(name: str):
    file = read_graphs(json.dumps({"graphs": {name: "./a.py:g", "good": "./b.py:g"}}).encode())
    assert not file.refused
    bad, good = file.graphs
    assert bad.problems
    assert not good.problems


def test_names_that_a_model_cannot_tell_apart_are_one_name():
    first, second = read_graphs(b'{"graphs": {"my_graph": "./a.py:g", "My-Graph": "./b.py:g"}}').graphs
    assert spoken(first.name) == spoken(second.name) == "my-graph"
    assert not first.problems
    assert "cannot be told from my_graph" in second.problems[0]


@given(st.binary(max_size=400))
def test_nothing_in_a_file_makes_reading_it_fail(raw: bytes):
    read_graphs(raw)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["graphs", "env", "dependencies", "http", "x"]), values))
def test_whatever_json_stands_there_is_answered_in_words(document: dict[str, Any]):
    file = read_graphs(json.dumps(document).encode())
    assert all(problem.line >= 1 and problem.message for problem in file.problems)
