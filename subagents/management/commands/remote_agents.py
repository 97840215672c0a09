"""Remote agents on the command line: list them, test their connection, and take over what deepagents has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from access.console import Exit, VerbCommand
from subagents import registry, remote_contacts, services
from subagents.api import shapes
from subagents.errors import SubagentsError
from subagents.formats.deepagents import NotRead, Reading, read_async_subagents
from subagents.kinds import REMOTE
from subagents.services import Actor

if TYPE_CHECKING:
    from subagents.registry import Registry

_COMMAND_LINE = Actor(label="command line")


class Command(VerbCommand):
    help = "List remote agents, test whether they answer, and import those of deepagents."
    examples = {
        "list": "remote_agents list\nremote_agents list --json",
        "test": "remote_agents test coder",
        "import": "remote_agents import config.toml\nremote_agents import agents.json --write",
    }

    def add_verbs(self, add: Any) -> None:
        add("list", help="every remote agent of both sources")
        add("test", help="ask an agent's server whether tasks could be started").add_argument("name")
        taking = add("import", help="a deepagents TOML, JSON or Python file; says what would happen unless --write")
        taking.add_argument("file")
        taking.add_argument("--write", action="store_true", help="store what is new and what changed")

    def do_list(self, options: dict[str, Any]) -> None:
        entries = registry.current().remotes
        known = remote_contacts.contacts([entry.name for entry in entries])
        if options["json"]:
            self.answer([shapes.remote(entry, contact=known.get(entry.name)) for entry in entries])
            return
        rows = [
            (
                entry.name,
                entry.source.value,
                entry.state.value,
                entry.agent.host or "this deployment",
                entry.agent.graph_id,
            )
            for entry in entries
        ]
        self.table(("name", "source", "state", "where", "graph"), rows)

    def do_test(self, options: dict[str, Any]) -> None:
        now = registry.current()
        entry = next((one for one in now.remotes if one.name == options["name"] and not one.problems), None)
        if entry is None:
            raise CommandError("There is no such remote agent.", returncode=Exit.NOT_FOUND)
        fault = remote_contacts.try_out(entry.agent, now.config)
        if fault is not None:
            raise CommandError(str(fault.sentence), returncode=Exit.FAILED)
        self.tell(f"{entry.name} answers and knows its graph.")

    def do_import(self, options: dict[str, Any]) -> None:
        path = Path(options["file"])
        try:
            found = read_async_subagents(path.read_bytes(), path.name)
        except (OSError, NotRead) as fault:
            raise CommandError(f"{path.name}: {fault}", returncode=Exit.FAILED) from None
        rows = [self._row(reading, write=options["write"]) for reading in found]
        if options["json"]:
            self.answer(rows)
        else:
            self.lines(*(f"{row['name']}: {row['result']}{row['problem'] and ': ' + row['problem']}" for row in rows))
        if any(row["problem"] for row in rows):
            raise CommandError("not all can be imported", returncode=Exit.FAILED)

    def _row(self, reading: Reading, *, write: bool) -> dict[str, str]:
        """What becomes of one entry: new, changed, same, conflict or invalid."""
        if reading.agent is None:
            return {"name": reading.name, "result": "invalid", "problem": "; ".join(reading.problems)}
        name = reading.agent.name
        result, problem = _compared(reading, registry.current(max_age=0))
        if write and result in {"new", "changed"}:
            try:
                _store(reading, result)
            except SubagentsError as refused:
                result, problem = "conflict", str(refused)
        return {"name": name, "result": result, "problem": problem}


def _compared(reading: Reading, now: Registry) -> tuple[str, str]:
    assert reading.agent is not None
    holder = registry.holder_of(reading.agent.name)
    if holder is not None:
        return "conflict", f"the name is held by a stronger source ({holder.value})"
    stored = next((one.agent for one in now.remotes if one.name == reading.agent.name), None)
    if stored is None:
        return "new", ""
    before, after = REMOTE.shown(REMOTE.to_plain(stored)), REMOTE.shown(REMOTE.to_plain(reading.agent))
    return ("same" if before == after else "changed"), ""


def _store(reading: Reading, result: str) -> None:
    assert reading.agent is not None
    if result == "new":
        services.create(REMOTE, reading.document, actor=_COMMAND_LINE)
        return
    stored = registry.store(REMOTE).get(reading.agent.name)
    services.update(
        REMOTE,
        stored.name,
        {key: value for key, value in reading.document.items() if key != "name"},
        expected_version=stored.version or "",
        actor=_COMMAND_LINE,
    )
