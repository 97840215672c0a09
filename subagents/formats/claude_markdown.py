"""Agent files as coding agents keep them: Markdown, a YAML header with name and description, the prompt below it.

Such headers are written by hand and by many programs. What can be understood is; what cannot is said with its line.
No value here ever gives a subagent more than its words say, and nothing is replaced by a placeholder.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from engine.config.errors import Problem, Severity, quoted
from engine.config.names import normalise_name
from engine.config.nodes import Unreadable
from engine.tools.names import DELEGATION_TOOLS, KNOWN_TOOLS
from subagents.definitions import Source
from subagents.errors import InvalidDefinition
from subagents.formats.front_matter import Document, Field, plain_key, read
from subagents.validation import validate_definition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from subagents.definitions import Definition

_FIELDS: Final = {
    "name": "name",
    "displayname": "display_name",
    "description": "description",
    "model": "model",
    "tools": "tools",
    "allowedtools": "tools",
    "disallowedtools": "disallowed_tools",
    "skills": "skills",
    "maxturns": "max_turns",
    "timeoutseconds": "timeout_seconds",
    "timeout": "timeout_seconds",
    "tokenbudget": "token_budget",
    "enabled": "enabled",
}
_IGNORED: Final = frozenset(
    [
        "background",
        "category",
        "color",
        "colour",
        "effort",
        "emoji",
        "hooks",
        "icon",
        "initialprompt",
        "isolation",
        "level",
        "mcpservers",
        "memory",
        "metadata",
        "permissionmode",
        "priority",
        "tags",
        "version",
        "author",
    ]
)
_TOOLS: Final = {
    "read": "read_file",
    "write": "write_file",
    "edit": "str_replace",
    "multiedit": "str_replace",
    "ls": "ls",
    "glob": "glob",
    "grep": "grep",
    "bash": "bash",
    "websearch": "web_search",
    "webfetch": "web_fetch",
    "todowrite": "write_todos",
    "task": "task",
    "agent": "task",
}
_LIMITED: Final = {"tools": "it is not granted", "disallowed_tools": "it is denied altogether"}
_EVERY_TOOL: Final = frozenset({"*", "all", "alltools"})
_LISTS: Final = frozenset({"tools", "disallowed_tools", "skills"})
_COMMA: Final = re.compile(r",(?![^(]*\))")  # not one inside parentheses: `Bash(git log, git diff)` is one item
_LONGEST_LABEL: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFile:
    """One file. `definition` None: it cannot be imported, and at least one of `problems` is no warning."""

    file_name: str
    definition: Definition | None
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Reading:
    file_name: str
    document: dict[str, object] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # where each field of the document stands
    problems: list[Problem] = field(default_factory=list)

    def note(self, line: int, path: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self.problems.append(
            Problem(severity=severity, path=path, line=line, column=1, message=message, file_name=self.file_name)
        )


def read_agent_file(raw: bytes, *, file_name: str) -> AgentFile:
    """Read one agent file. Never raises for what the file holds; `file_name` may carry a path.

    Problems of severity `entry` keep the file from being imported; warnings say what is read in another way than it
    is written, or not at all.
    """
    reading = _Reading(PurePath(file_name).name)
    try:
        document = read(raw, known=frozenset({*_FIELDS, *_IGNORED}))
    except Unreadable as unreadable:
        for fault in unreadable.faults:
            reading.note(fault.line, "", fault.message, Severity.ENTRY)
        return AgentFile(file_name=reading.file_name, definition=None, problems=tuple(reading.problems))
    _take(reading, document)
    definition = _checked(reading)
    problems = tuple(sorted(reading.problems, key=lambda problem: problem.line))
    return AgentFile(file_name=reading.file_name, definition=definition, problems=problems)


def _take(reading: _Reading, document: Document) -> None:
    for entry in document.fields:
        target = _FIELDS.get(plain_key(entry.key))
        if target is None:
            reading.note(entry.line, entry.key, _ignored(entry))
        elif target in reading.document:
            message = f"says the same as what stands on line {reading.lines[target]}; only one of them can be meant"
            reading.note(entry.line, entry.key, message, Severity.ENTRY)
        else:
            _take_field(reading, entry, target)
    _take_name(reading)
    reading.document["system_prompt"] = document.body


def _take_field(reading: _Reading, entry: Field, target: str) -> None:
    reading.lines[target] = entry.line
    for fault in entry.faults:
        reading.note(fault.line, entry.key, fault.message, Severity.ENTRY)
    if entry.as_text:
        reading.note(entry.line, entry.key, "not valid YAML; taken as plain text up to the next known name: look at it")
    value = entry.value
    if isinstance(value, str) and not value.strip():
        reading.note(entry.line, entry.key, "empty, which is read as not set")
        value = None
    if target in _LISTS:
        value = _take_list(reading, entry, target, value)
    reading.document[target] = value


def _ignored(entry: Field) -> str:
    if plain_key(entry.key) == "permissionmode":
        return "ignored: a file never grants permissions; what a subagent may do follows from its tools and the lead's"
    return "ignored: this has no meaning here"


def _take_list(reading: _Reading, entry: Field, target: str, value: object) -> object:
    items = [item.strip() for item in _COMMA.split(value)] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return items  # null, or something that the rules of the field refuse with their own sentence
    items = list(dict.fromkeys(item for item in items if item))
    if target == "skills":
        return items
    if target == "tools" and any(plain_key(item) in _EVERY_TOOL for item in items):
        reading.note(entry.line, entry.key, "read as every tool of the lead, without those no subagent gets")
        return None
    return _take_tools(reading, entry, target, items)


def _take_tools(reading: _Reading, entry: Field, target: str, items: Iterable[str]) -> list[str]:
    tools = []
    for item in items:
        whole, limited, _how = item.partition("(")
        tool = _TOOLS.get(plain_key(whole), whole.strip())
        remark = ""
        if limited:
            # A limit that nothing here enforces: neither may the tool be granted as a whole, nor the denial be lost.
            remark = "limits a tool in a way that is not known here, so " + _LIMITED[target]
            tool = item if target == "tools" else tool
        elif tool in DELEGATION_TOOLS and target == "tools":
            remark = "is left out: no subagent ever gets it"
        elif tool not in KNOWN_TOOLS and not tool.startswith("mcp__"):
            remark = "is no tool that comes with this product; kept, and ignored unless config.yaml adds it"
        if remark:
            reading.note(entry.line, entry.key, f"{quoted(item)} {remark}")
        if tool not in DELEGATION_TOOLS or target != "tools":
            tools.append(tool)
    return list(dict.fromkeys(tools))


def _take_name(reading: _Reading) -> None:
    """Find the one name the subagent goes by; what was written stays as its label when it is more than a name."""
    stem = PurePath(reading.file_name).stem
    written = reading.document.get("name")
    line = reading.lines.setdefault("name", 1)
    if written is None:
        written = stem
        reading.note(line, "name", f"not set; the file's name {quoted(stem)} is used")
    if not isinstance(written, str):
        return
    try:
        name = normalise_name(written)
    except ValueError:
        name = _slug(written) or _slug(stem)
        if not reading.document.get("display_name") and len(written.strip()) <= _LONGEST_LABEL:
            reading.document["display_name"] = written.strip()
    if name != written:
        reading.note(line, "name", f"{quoted(written)} is called by the name {quoted(name)}")
    if _slug(stem) not in {name, ""}:
        reading.note(line, "name", f"the file is called {quoted(stem)}; the name {quoted(name)} counts")
    reading.document["name"] = name or written


def _slug(text: str) -> str:
    """The letters a-z, digits and hyphens of a text, accents taken off; "" when it has none of them."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub("[^a-z0-9]+", "-", plain)[:64].strip("-")


def _checked(reading: _Reading) -> Definition | None:
    broken = any(problem.severity is not Severity.WARNING for problem in reading.problems)
    try:
        definition = validate_definition(reading.document, source=Source.MANAGED)
    except InvalidDefinition as invalid:
        for path, sentence in invalid.faults:
            line = reading.lines.get(path.partition(".")[0].partition("[")[0], 1)
            reading.note(line, path, sentence, Severity.ENTRY)
        return None
    return None if broken else definition
