"""The catalogue on the command line: list, show, explain, lint, and switch managed subagents on and off."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from access.console import Exit, VerbCommand
from engine.config.names import normalise_name
from engine.text import clean, shorten
from subagents import registry, services, usage
from subagents.api import shapes
from subagents.api.faults import problem_of
from subagents.catalogue import Entry, State
from subagents.checks import unused_overrides
from subagents.definitions import Source
from subagents.errors import ConfigRefused, NotFound, ReadOnly, SubagentsError
from subagents.kinds import SUBAGENT
from subagents.services import Actor
from subagents.wording import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subagents.agent_entries import AgentEntry

_COMMAND_LINE = Actor(label="command line")


class Command(VerbCommand):
    help = "List, show, explain and check subagents; switch managed ones on and off."
    examples = {
        "list": "subagents list\nsubagents list --source managed --state disabled --json",
        "show": "subagents show bash\nsubagents show writer --source managed --json",
        "explain": "subagents explain bash\nsubagents explain bash --field max_turns",
        "lint": "subagents lint\nsubagents lint writer --json",
        "enable": "subagents enable writer reviewer",
        "disable": "subagents disable writer --json",
    }

    def add_verbs(self, add: Any) -> None:
        listing = add("list", help="every entry of every source")
        listing.add_argument("--state", choices=[state.value for state in State], help="only entries in this state")
        show = add("show", help="one entry: what was written, and what a run of it gets")
        explain = add("explain", help="where each value comes from")
        explain.add_argument("--field", help="only this one, such as max_turns")
        for verb in (show, explain):
            verb.add_argument("name")
        for verb in (listing, show, explain):
            verb.add_argument("--source", choices=[source.value for source in Source], help="only this source")
        lint = add("lint", help="what is wrong with entries; exit status 1 when anything is")
        lint.add_argument("names", nargs="*", metavar="name", help="without names, everything")
        for word in ("enable", "disable"):
            add(word, help=f"{word} managed subagents").add_argument("names", nargs="+", metavar="name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except ConfigRefused as refused:
            raise CommandError(str(refused), returncode=Exit.FAILED) from None

    # --- Looking -----------------------------------------------------------------------------------------------
    def do_list(self, options: dict[str, Any]) -> None:
        wanted = {"source": options["source"], "state": options["state"]}
        found = [
            entry
            for entry in registry.current().catalogue.entries
            if all(value is None or getattr(entry, fact) == value for fact, value in wanted.items())
        ]
        if options["json"]:
            self.answer([_shape(entry) for entry in found])
            return
        head = ("name", "source", "state", "turns", "seconds", "model", "what it is for")
        self.table(head, [_row(entry) for entry in found])

    def do_show(self, options: dict[str, Any]) -> None:
        entry = _entry(options)
        shape = _shape(entry)
        if options["json"]:
            self.answer(shape)
            return
        self.lines(f"{entry.name} ({entry.source.value}, {entry.state.value})")
        prompt = (shape["definition"] or {}).pop("system_prompt", "")
        for title in ("definition", "effective"):
            values: Mapping[str, object] = shape[title] or {}
            self.lines("", f"{title}:", *(f"  {field}: {_said(field, value)}" for field, value in values.items()))
        self.lines("", "system_prompt:", *(f"  {line}" for line in prompt.splitlines()))
        self._notes(entry)

    def do_explain(self, options: dict[str, Any]) -> None:
        entry = _entry(options)
        fields = shapes.layers_of(entry, may_read_prompt=True)
        only = options["field"]
        if only is not None and only not in fields:
            raise CommandError(f"no field {only}; fields are {', '.join(fields)}", returncode=Exit.USAGE)
        fields = fields if only is None else {only: fields[only]}
        if options["json"]:
            self.answer(fields)
            return
        for field, said in fields.items():
            lost = [f"; {layer['layer']}: {_said(field, layer['value'])}" for layer in said["layers"][1:]]
            self.lines(f"{field}: {_said(field, said['value'])} ← {said['layer']}{''.join(lost)}")
        self._notes(entry)

    def do_lint(self, options: dict[str, Any]) -> None:
        names = options["names"]
        if names:
            found = [row for name in names for row in _lint_named(name)]
        else:
            now = registry.current()
            bearers: tuple[Entry | AgentEntry, ...] = (*now.catalogue.entries, *now.agents)
            found = [row for entry in bearers for row in _lint(entry)]
            # What the file says of an entry stands there already, without its line.
            known = {row["problem"] for row in found}
            said = map(str, (*now.problems, *unused_overrides(now)))
            found += [
                {"kind": "file", "name": "", "source": "config", "problem": text} for text in said if text not in known
            ]
        if options["json"]:
            self.answer(found)
        else:
            self.lines(*(f"{row['name'] or 'config.yaml'} ({_kind_in_words(row)}): {row['problem']}" for row in found))
        if found:
            raise CommandError(f"{len(found)} found", returncode=Exit.FAILED)
        self.tell("Nothing is wrong.")

    # --- Switching ---------------------------------------------------------------------------------------------
    def do_enable(self, options: dict[str, Any]) -> None:
        self._switch(options, enabled=True)

    def do_disable(self, options: dict[str, Any]) -> None:
        self._switch(options, enabled=False)

    def _switch(self, options: dict[str, Any], *, enabled: bool) -> None:
        names = [_spelled(name) for name in options["names"]]
        outcome = services.set_enabled(SUBAGENT, names, enabled, actor=_COMMAND_LINE)
        refused = {name: what for name, what in outcome.items() if isinstance(what, SubagentsError)}
        if options["json"]:
            rows = [
                {"name": name, "result": what, "problem": None}
                if name not in refused
                else {"name": name, "result": "refused", "problem": _sentence(refused[name])}
                for name, what in outcome.items()
            ]
            self.answer(rows)
        else:
            self.lines(*(f"{name}: {what}" for name, what in outcome.items() if name not in refused))
        if refused:
            sentences = "\n".join(_sentence(fault) for fault in refused.values())
            raise CommandError(sentences, returncode=_exit_of(next(iter(refused.values()))))

    def _notes(self, entry: Entry) -> None:
        for text in _problems(entry):
            self.tell(str(text))


def _entry(options: Mapping[str, Any]) -> Entry:
    """The entry that the command line names: the holder of the name, or the one of the source that was asked for."""
    catalogue = registry.current().catalogue
    name, source = options["name"], options["source"]
    if catalogue.holder(name) is None:
        name = _spelled(name)
    if source is None:
        found = catalogue.holder(name)
    else:
        found = next((entry for entry in catalogue.entries if (entry.name, entry.source) == (name, source)), None)
    if found is None:
        raise _none_named(name)
    return found


def _lint_named(name: str) -> list[dict[str, str]]:
    """What is wrong with whatever bears this name: the subagent that holds it, and the custom agent."""
    now = registry.current()
    spelled = name if now.catalogue.holder(name) is not None else _spelled(name)
    bearers: list[Entry | AgentEntry | None] = [
        now.catalogue.holder(spelled),
        *(entry for entry in now.agents if entry.name in (name, spelled)),
    ]
    found = [entry for entry in bearers if entry is not None]
    if not found:
        raise _none_named(name)
    return [row for entry in found for row in _lint(entry)]


def _lint(entry: Entry | AgentEntry) -> list[dict[str, str]]:
    kind, source = ("subagent", entry.source) if isinstance(entry, Entry) else ("agent", Source.MANAGED)
    facts = {"kind": kind, "name": entry.name, "source": source.value}
    return [{**facts, "problem": str(problem)} for problem in _problems(entry)]


def _kind_in_words(row: Mapping[str, str]) -> str:
    return "custom agent" if row["kind"] == "agent" else row["source"]


def _spelled(name: str) -> str:
    try:
        return normalise_name(name)
    except ValueError:
        raise _none_named(name) from None


def _none_named(name: str) -> CommandError:
    return CommandError(f"There is none named {clean(name)}.", returncode=Exit.NOT_FOUND)


def _shape(entry: Entry) -> dict[str, Any]:
    use = usage.last_used([entry.name]).get(entry.name)
    shape = shapes.subagent(entry, may_read_prompt=True, use=use)
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in shape.items()}


def _row(entry: Entry) -> tuple[str, ...]:
    limits = ("–", "–", "–")
    purpose = entry.definition.description
    if entry.problems:
        purpose = entry.problems[0]
    else:
        values = entry.effective
        limits = (str(values.max_turns), str(values.timeout_seconds), values.model)
    return (entry.name, entry.source.value, entry.state.value, *limits, shorten(_first_line(purpose), 80))


def _problems(entry: Entry | AgentEntry) -> list[object]:
    stopped = entry.state in {State.SHADOWED, State.INVALID, State.UNAVAILABLE}
    return [*([entry.reason] if stopped and entry.reason else []), *entry.problems, *entry.warnings]


def _said(field: str, value: object) -> str:
    """A value in one line: null and [] of a list in the words of the page, which tells them apart."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_said(name, inner)}" for name, inner in value.items())
    if value is None and field not in {"tools", "skills"}:
        return "not said here"
    text = in_words(field, value)
    if isinstance(value, list):
        return text
    first = shorten(_first_line(text), 100)
    return first if first == text else f"{first} … ({len(text)} characters)"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _sentence(fault: SubagentsError) -> str:
    problem = problem_of(fault)
    return problem.detail if problem is not None else str(fault)


def _exit_of(fault: SubagentsError) -> Exit:
    if isinstance(fault, NotFound):
        return Exit.NOT_FOUND
    return Exit.CONFLICT if isinstance(fault, ReadOnly) else Exit.FAILED
