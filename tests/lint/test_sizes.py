"""Walls of size that no linter of ours measures."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("deerflow_site", "access", "engine", "subagents", "runs", "bench", "tests", ".ci")
MODULE_LINES = 400
FUNCTION_LINES = 50


def modules() -> list[Path]:
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


def too_long(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    name = path.relative_to(ROOT)
    faults = [f"{name} has {lines} lines"] if lines > MODULE_LINES else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                faults.append(f"{name}:{node.lineno} {node.name} has {length} lines")
    return faults


def test_no_module_has_more_than_400_lines_and_no_function_more_than_50():
    assert [fault for path in modules() for fault in too_long(path)] == []


def test_every_module_with_code_postpones_the_evaluation_of_annotations():
    wanted = "from __future__ import annotations"
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in modules()}
    assert [name for name, text in texts.items() if _has_code(text) and wanted not in text] == []


def _has_code(text: str) -> bool:
    body = ast.parse(text).body
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in body)


def test_no_javascript_module_has_more_than_400_lines():
    paths = (
        path for folder in ("runs", "subagents", "access", "deerflow_site") for path in (ROOT / folder).rglob("*.js")
    )
    lines = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in paths}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES} == {}
