"""Where definitions are kept: move them between the database and files."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError

from access.console import Exit, VerbCommand
from subagents import registry
from subagents.actor import Actor
from subagents.errors import ConfigRefused
from subagents.moving import WHOLE, move


class Command(VerbCommand):
    help = "Move subagents and custom agents between the backends of agent_storage."
    examples = {
        "move": "agent_storage move --to file --dry-run\n"
        "agent_storage move --to file --keep\n"
        "agent_storage move --to db --json"
    }

    def add_verbs(self, add: Any) -> None:
        verb = add("move", help="move every definition, compare it field for field, and only then remove the old one")
        verb.add_argument("--to", required=True, choices=("db", "file"), help="the backend that shall hold them")
        verb.add_argument("--keep", action="store_true", help="leave the old ones too, until the setting is changed")
        verb.add_argument("--dry-run", action="store_true", help="only say what would happen")

    def do_move(self, options: dict[str, Any]) -> None:
        actor = Actor(label="command line")
        outcome = move(options["to"], actor=actor, keep=options["keep"], dry_run=options["dry_run"])
        whole = all(each.result in WHOLE for each in outcome)
        if options["json"]:
            rows = [{"kind": e.kind, "name": e.name, "result": e.result.value, "why": e.why} for e in outcome]
            self.answer({"to": options["to"], "dry_run": options["dry_run"], "definitions": rows})
        elif outcome:
            head = ("kind", "name", "result", "why")
            self.table(head, [(each.kind, each.name, each.result.value, each.why) for each in outcome])
        else:
            self.tell("There is nothing to move.")
        self._remind(options["to"])
        if not whole:
            if options["json"]:
                sys.exit(Exit.FAILED)
            raise CommandError("Not every definition was moved; what is named above was left as it is.")

    def _remind(self, target: str) -> None:
        try:
            in_force = registry.current(max_age=0).config.agent_storage.backend
        except ConfigRefused:
            return
        if in_force != target:
            self.tell(f"config.yaml says agent_storage.backend: {in_force}; {target} is used once it says so.")
