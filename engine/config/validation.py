"""Plain values to a Config: entries one by one, so that a bad one hides nothing, then the rest at once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from engine.config import names, schema
from engine.config.errors import Finding, KeyPath, Severity, quoted
from engine.config.fields import Expected
from engine.config.report import Reporter
from engine.reasons import Reason, reason_of
from engine.reasons import gettext_noop as _

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from engine.config.tree import Tree


@dataclass(frozen=True, slots=True)
class _EntryKind:
    section: type[schema.Section]
    name_rule: Callable[[str], str]


_ENTRY_KINDS: Mapping[KeyPath, _EntryKind] = {
    ("models",): _EntryKind(schema.ModelConfig, names.label_name),
    ("tools",): _EntryKind(schema.ToolConfig, names.label_name),
    ("async_subagents",): _EntryKind(schema.RemoteAgentConfig, names.normalise_name),
    ("mcp_servers",): _EntryKind(schema.McpServerConfig, names.server_name),
    ("acp_agents",): _EntryKind(schema.AcpAgentConfig, names.label_name),
    ("subagents", "agents"): _EntryKind(schema.AgentOverride, names.normalise_name),
    ("subagents", "custom_agents"): _EntryKind(schema.CustomAgentConfig, names.normalise_name),
}


@dataclass(slots=True)
class _Entry:
    """One item of a list or map of entries. `name` is the one it goes by, None when it has no lawful one."""

    path: KeyPath
    name_path: KeyPath
    written_name: object
    written: object
    name: str | None = None
    value: schema.Section | None = None

    @property
    def kind(self) -> _EntryKind:
        return _ENTRY_KINDS[self.path[:-1]]


def entry_path(path: KeyPath) -> KeyPath | None:
    """Return the entry that `path` lies in, None when it belongs to the document as a whole."""
    for length in (1, 2):
        if len(path) > length and path[:length] in _ENTRY_KINDS:
            return path[: length + 1]
    return None


def validate(tree: Tree) -> schema.Config | None:
    """Return the configuration without its invalid entries, None when the document itself is at fault.

    Everything found on the way is added to `tree.findings`.
    """
    reporter = Reporter(tree)
    if not isinstance(tree.value, dict):
        sections = _("expected sections such as models: and subagents: at the top level, got %(got)s")
        reporter.expected((), Expected(sections))
        return None
    entries = list(_entries(tree.value))
    unreadable_keys = {finding.path for finding in tree.findings}
    for entry in entries:
        _check_name(tree, entry, unreadable_keys)
        try:
            entry.value = entry.kind.section.model_validate(entry.written)
        except ValidationError as error:
            reporter.schema_errors(error, entry.kind.section, entry.path)
    _check_clashes(tree, entries)
    broken = {entry_path(finding.path) for finding in tree.findings if finding.severity is not Severity.WARNING}
    sound = [entry for entry in entries if entry.path not in broken]
    _advise(tree, reporter, sound)
    try:
        return schema.Config.model_validate(_with_entries(tree.value, sound))
    except ValidationError as error:
        reporter.schema_errors(error, schema.Config, ())
        return None


def _entries(document: dict[str, object]) -> Iterator[_Entry]:
    for section in _ENTRY_KINDS:
        container = _at(document, section)
        if isinstance(container, list):
            for index, item in enumerate(container):
                path = (*section, index)
                name = item.get("name") if isinstance(item, dict) else None
                yield _Entry(path, (*path, "name"), name, item)
        elif isinstance(container, dict):
            for key, item in container.items():
                yield _Entry((*section, key), (*section, key), key, item)


def _at(document: object, path: KeyPath) -> object:
    for step in path:
        document = document.get(str(step)) if isinstance(document, dict) else None
    # A list where names belong, or the other way round, is a wrong section and holds no entries.
    expected = list if path in {("models",), ("tools",), ("async_subagents",)} else dict
    return document if isinstance(document, expected) else None


def _check_name(tree: Tree, entry: _Entry, unreadable_keys: Container[KeyPath]) -> None:
    if not isinstance(entry.written_name, str) or entry.path in unreadable_keys:
        return
    keyed = entry.path == entry.name_path
    try:
        entry.name = entry.kind.name_rule(entry.written_name)
    except ValueError as error:
        # The schema reports a listed entry's name; a key is no field and is reported here.
        if keyed:
            tree.findings.append(Finding(entry.path, *tree.key_place(entry.path), reason_of(error)))


def _check_clashes(tree: Tree, entries: Iterable[_Entry]) -> None:
    by_name: defaultdict[tuple[KeyPath, str], list[_Entry]] = defaultdict(list)
    for entry in entries:
        if entry.name is not None:
            by_name[entry.path[:-1], entry.name].append(entry)
    for (_section, name), namesakes in by_name.items():
        for entry in namesakes if len(namesakes) > 1 else ():
            # Nothing says which of them is meant, so none of them is used.
            other = namesakes[0] if entry is not namesakes[0] else namesakes[1]
            line, _column = _name_place(tree, other)
            sentence = _("the name %(name)s is given twice; the other one stands on line %(line)s")
            message = Reason(sentence, name=quoted(name), line=line)
            tree.findings.append(Finding(entry.name_path, *_name_place(tree, entry), message))


def _advise(tree: Tree, reporter: Reporter, entries: Iterable[_Entry]) -> None:
    """Warn about what is accepted but may not be what was meant."""
    for entry in entries:
        if entry.name != entry.written_name and entry.name is not None:
            message = Reason(_("the name is read as %(name)s"), name=quoted(entry.name))
            _warn(tree, entry.name_path, message, _name_place(tree, entry))
        if isinstance(entry.value, schema.AcpAgentConfig) and entry.value.auto_approve_permissions:
            path = (*entry.path, "auto_approve_permissions")
            message = Reason(_("read as allow_once for every kind of tool; name the kinds under permissions instead"))
            _warn(tree, path, message, tree.key_place(path))
        if isinstance(entry.value, schema.ModelConfig):
            for key in entry.value.extra:
                close = reporter.close_to(key, schema.ModelConfig)
                if close:
                    path = (*entry.path, key)
                    sentence = _('passed on to the model\'s class as it is; did you mean "%(name)s"?')
                    message = Reason(sentence, name=close)
                    _warn(tree, path, message, tree.key_place(path))


def _warn(tree: Tree, path: KeyPath, message: str, place: tuple[int, int]) -> None:
    tree.findings.append(Finding(path, *place, message, Severity.WARNING))


def _name_place(tree: Tree, entry: _Entry) -> tuple[int, int]:
    keyed = entry.path == entry.name_path
    return tree.key_place(entry.path) if keyed else tree.place(entry.name_path)


def _with_entries(document: dict[str, object], entries: Iterable[_Entry]) -> dict[str, object]:
    """Copy the document with its entries replaced by the sound ones, keys under their lawful names."""
    result = dict(document)
    if isinstance(result.get("subagents"), dict):
        result["subagents"] = dict(result["subagents"])  # type: ignore[call-overload]
    sound: defaultdict[KeyPath, list[_Entry]] = defaultdict(list)
    for entry in entries:
        sound[entry.path[:-1]].append(entry)
    for section in _ENTRY_KINDS:
        container = _at(document, section)
        if container is None:
            continue
        parent = result if len(section) == 1 else result[str(section[0])]
        values: object = [entry.value for entry in sound[section]]
        if isinstance(container, dict):
            values = {entry.name: entry.value for entry in sound[section]}
        parent[section[-1]] = values  # type: ignore[index]
    return result
