"""System checks: what is wrong with config.yaml, with names, and with what definitions refer to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning
from django.db import DatabaseError

from engine.config.errors import Problem, Severity
from subagents import configuration, registry
from subagents.definitions import Source
from subagents.errors import ConfigRefused
from subagents.lint import REMARKS
from subagents.notes import note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from subagents.agent_entries import AgentEntry
    from subagents.catalogue import Entry
    from subagents.remote_entries import RemoteEntry

_REFUSED = "The whole file is refused, and no earlier good one is known."
_LAST_GOOD = "The whole file is refused; the last good configuration stays in force."
_ENTRY_ONLY = "This entry is not in force; everything else is."


def check_subagents(**_kwargs: Any) -> list[CheckMessage]:
    """Report the problems of the configuration file and of the catalogue.

    Only a file that leaves the system without any configuration is an error: errors keep every command from
    starting, workers included, and those shall run on with what is good.
    """
    try:
        now = registry.Observer(read_only=True).current()
    except ConfigRefused as refused:
        return [Error(str(problem), hint=_REFUSED, id="subagents.E001") for problem in refused.problems]
    except DatabaseError:
        # Nothing is known of managed definitions; whoever needs the database will say why it cannot be asked.
        reading = configuration.look(Path(settings.CONFIG_FILE), None, fresh=True)
        return [_of_problem(problem) for problem in reading.result.problems]
    return [
        *(_of_problem(problem) for problem in now.problems),
        *(message for entry in now.catalogue.entries for message in _of_entry(entry)),
        *(message for agent in now.agents for message in _of_agent(agent, "custom agent")),
        *(message for remote in now.remotes for message in _of_agent(remote, "remote agent")),
        *(Warning(text, id="subagents.W007") for text in unused_overrides(now)),
    ]


def _of_problem(problem: Problem) -> CheckMessage:
    hints = {Severity.REFUSED: _LAST_GOOD, Severity.ENTRY: _ENTRY_ONLY, Severity.WARNING: None}
    ids = {Severity.REFUSED: "subagents.W001", Severity.ENTRY: "subagents.W002", Severity.WARNING: "subagents.W003"}
    return Warning(str(problem), hint=hints[problem.severity], id=ids[problem.severity])


def _of_entry(entry: Entry) -> Iterator[CheckMessage]:
    label = f"{entry.source.value} subagent {entry.name}"
    if entry.shadowed_by is not None and entry.reason is not None:
        yield Warning(f"{label}: {entry.reason}", id="subagents.W004")
    if entry.problems and entry.source is Source.MANAGED:
        yield Warning(f"{label}: {'; '.join(entry.problems)}", id="subagents.W005")
    for warning in entry.warnings:
        if warning.code in REMARKS:
            yield Info(f"{label}: {warning}", id="subagents.I001")
        elif warning.code != "broken_override":  # the file's own problem says it with its line
            yield Warning(f"{label}: {warning}", id="subagents.W006")


def _of_agent(entry: AgentEntry | RemoteEntry, what: str) -> Iterator[CheckMessage]:
    label = f"{what} {entry.name}"
    if entry.problems and entry.source is Source.MANAGED:
        yield Warning(f"{label}: {'; '.join(entry.problems)}", id="subagents.W005")
    for warning in entry.warnings:
        yield Warning(f"{label}: {warning}", id="subagents.W006")


def unused_overrides(now: registry.Registry) -> Iterator[str]:
    """Say which overrides of config.yaml name no subagent."""
    names = {entry.name for entry in now.catalogue.entries}
    path = Path(settings.CONFIG_FILE).name
    for name in now.config.subagents.agents:
        if name not in names:
            yield f"{path} {note('unused_override', name=name)}"
