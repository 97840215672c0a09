"""Read config.yaml: strictly, completely and without ever raising for what the file holds."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.config import nodes
from engine.config.errors import Finding, KeyPath, Problem, Severity, format_path
from engine.config.schema import Config
from engine.config.tree import plant
from engine.config.validation import entry_path, validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a file says. `config` is None exactly when the file is refused.

    `problems` holds everything found, in the order of the file. `invalid_entries` maps the path of
    each entry that `config` leaves out, such as `acp_agents.codex` or `models[1]`, to its reasons.
    """

    config: Config | None
    problems: tuple[Problem, ...] = ()
    invalid_entries: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        return self.config is None


def read_config(raw: bytes, *, file_name: str = "config.yaml") -> ReadResult:
    """Read a whole configuration file and report all that is wrong with it at once.

    Document errors (encoding, size, syntax, tags, duplicate keys, anything wrong outside the
    entries) refuse the file. Whatever else is wrong inside one model, tool, subagent, override,
    MCP server, remote or ACP agent makes that entry invalid and leaves the rest in force.
    Source: product.md §2.2.
    """
    try:
        root = nodes.parse(nodes.decode(raw))
    except nodes.Unreadable as error:
        faults = (Finding((), fault.line, fault.column, fault.message) for fault in error.faults)
        return ReadResult(None, _problems(faults, file_name))
    tree = plant(root)
    config = validate(tree)
    problems = _problems(tree.findings, file_name)
    if any(problem.severity is Severity.REFUSED for problem in problems):
        config = None
    return ReadResult(config, problems, _invalid_entries(tree.findings, file_name))


def default_config() -> Config:
    """Return what an empty file means."""
    return Config()


def signature(raw: bytes) -> str:
    """Return the SHA-256 of a file's bytes in hex: it changes exactly when the file does."""
    return hashlib.sha256(raw).hexdigest()


def _problems(findings: Iterable[Finding], file_name: str) -> tuple[Problem, ...]:
    problems = [_problem(finding, file_name) for finding in findings]
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column, problem.path)))


def _problem(finding: Finding, file_name: str) -> Problem:
    return Problem(
        severity=_severity(finding),
        path=format_path(finding.path),
        line=finding.line,
        column=finding.column,
        message=finding.message,
        file_name=file_name,
    )


def _severity(finding: Finding) -> Severity:
    if finding.severity is not None:
        return finding.severity
    return Severity.REFUSED if entry_path(finding.path) is None else Severity.ENTRY


def _invalid_entries(findings: Iterable[Finding], file_name: str) -> Mapping[str, tuple[Problem, ...]]:
    by_entry: defaultdict[KeyPath, list[Finding]] = defaultdict(list)
    for finding in findings:
        entry = entry_path(finding.path)
        if entry is not None and _severity(finding) is not Severity.WARNING:
            by_entry[entry].append(finding)
    return {format_path(entry): _problems(found, file_name) for entry, found in by_entry.items()}
