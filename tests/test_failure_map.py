"""failures.toml against the tests there are: every row of every kind is shown by tests that exist, or says why not."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MAP: dict[str, Any] = tomllib.loads((ROOT / "tests" / "failures.toml").read_text(encoding="utf-8"))
ROWS: dict[str, dict[str, Any]] = MAP["rows"]
NEVER_RUN = {"skip", "skipif", "xfail"}


def test_every_kind_has_a_rule_and_all_of_its_rows():
    named = [row for kind in MAP["kinds"].values() for row in kind["rows"]]
    assert len(named) == len(set(named))
    assert set(named) == set(ROWS)
    for letter, kind in MAP["kinds"].items():
        assert kind["rule"].endswith(".")
        assert all(row.startswith(letter) and row[1:].isdigit() for row in kind["rows"])


def test_every_row_has_a_rule_and_either_tests_or_a_reason():
    for row, entry in ROWS.items():
        assert entry["rule"].endswith("."), row
        assert set(entry) in ({"rule", "tests"}, {"rule", "reason"}), row
        assert entry.get("tests") or entry.get("reason"), row


def test_every_test_that_is_named_exists_and_is_not_skipped():
    wrong = {row: fault for row, entry in ROWS.items() for name in entry.get("tests", ()) if (fault := fault_of(name))}
    assert wrong == {}


def test_at_most_one_row_in_ten_has_a_reason_instead_of_a_test():
    reasons = [row for row, entry in ROWS.items() if "reason" in entry]
    assert len(reasons) * 10 <= len(ROWS), reasons


def fault_of(node_id: str) -> str:
    """What is wrong with one `file::test`, "" when nothing is."""
    place, _, name = node_id.partition("::")
    if not (ROOT / place).is_file():
        return f"{node_id}: there is no such file"
    marks = marks_by_test(place).get(name)
    if marks is None:
        return f"{node_id}: there is no such test"
    return f"{node_id}: marked {', '.join(marks & NEVER_RUN)}" if marks & NEVER_RUN else ""


@cache
def marks_by_test(place: str) -> dict[str, frozenset[str]]:
    """The tests at the top of a module, each with its own pytest marks and those of the module."""
    module = ast.parse((ROOT / place).read_text(encoding="utf-8"))
    everywhere = [
        mark
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for mark in (node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value])
    ]
    return {
        node.name: frozenset(name for mark in [*everywhere, *node.decorator_list] if (name := mark_name(mark)))
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def mark_name(mark: ast.expr) -> str:
    """`skipif` of `pytest.mark.skipif(…)`. A test that only another system cannot run is not left out here."""
    target = mark.func if isinstance(mark, ast.Call) else mark
    if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "pytest.mark":
        return ""
    return "" if "sys.platform" in ast.unparse(mark) else target.attr
