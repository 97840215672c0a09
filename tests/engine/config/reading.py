"""What the tests of the reader share: reading text, and naming problems by place, path and severity."""

from __future__ import annotations

from pathlib import Path

from engine.config.reader import ReadResult, read_config

SAMPLES = Path(__file__).parent / "samples"


def read(text: str) -> ReadResult:
    return read_config(text.encode("utf-8"))


def read_sample(name: str) -> ReadResult:
    return read_config((SAMPLES / f"{name}.yaml").read_bytes())


def found(result: ReadResult) -> list[tuple[str, int, str]]:
    return [(problem.severity.value, problem.line, problem.path) for problem in result.problems]


def messages(result: ReadResult) -> str:
    return "\n".join(str(problem) for problem in result.problems)
